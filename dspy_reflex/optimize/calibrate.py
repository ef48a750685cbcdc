"""Learn what a program's confidence is worth, and below which confidence a person should be asked.

One curve with two numbers (see `runtime.calibration`), because there are few rows to choose on: fitted on 24 units of three
rows and judged on 60 others, 300 times (`benchmarks/calibration_draws.py`), it stays within the calibration error that
chance alone gives in 82 of 100 draws, isotonic regression in 44; Brier scores .211 and .220. On 180 units: 94 and 91.

Where the rows are those that the program was chosen on, it looks a little better on them than it is, and its calibrated
confidence is too high by as much: by .02 in those draws, by more where candidates differ more.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from dspy_reflex.benchmark.confidence import auroc, ece_by_chance
from dspy_reflex.benchmark.statistics import brier, ece
from dspy_reflex.runtime.calibration import DIGITS, Calibration, log_odds

FEW_ANSWERS = 20
"""Below this nothing is fitted: the share right alone would be uncertain by more than 20 points."""
SLOPE_SD = 0.5
"""How far the logarithm of the slope is expected to lie from 0, as the standard deviation of a normal prior."""
PARTS = 20
"""At most so many parts, each judged by a curve that was fitted on the others."""


def fit(confidences: Sequence[float], hits: Sequence[bool]) -> Calibration | None:
    """The curve that makes the answers most probable; None if it cannot be fitted.

    Logistic regression of being right on the log-odds of the stated confidence (Platt scaling), by maximum a
    posteriori. The logarithm of the slope has a normal prior around 0, so the slope stays above 0 (the order of answers
    is kept) and stays near 1 unless the answers say otherwise. The shift has none: on these very answers, the mean
    calibrated confidence equals the share right.

    Args:
        confidences: What the program stated, each in [0, 1].
        hits: Whether it was right, in the same order.

    Returns:
        None with fewer than `FEW_ANSWERS` answers, or if all of them or none are right.
    """
    if len(hits) < FEW_ANSWERS or len(set(hits)) < 2:
        return None
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import expit

    odds, right = np.array([log_odds(one) for one in confidences]), np.array(hits, dtype=float)

    def loss(point: Any) -> tuple[float, Any]:
        log_slope, shift = point
        z, prior = np.exp(log_slope) * odds + shift, log_slope / SLOPE_SD**2 / len(right)
        gap = expit(z) - right
        value = np.mean(np.logaddexp(0, z) - right * z) + prior * log_slope / 2
        return value, np.array([np.exp(log_slope) * np.mean(gap * odds) + prior, np.mean(gap)])

    log_slope, shift = minimize(loss, np.zeros(2), jac=True, method="BFGS", tol=1e-8).x
    return Calibration(round(float(np.exp(log_slope)), DIGITS), round(float(shift), DIGITS), len(hits))


def threshold_for(calibration: Calibration, confidences: Sequence[float], target_precision: float) -> float | None:
    """The confidence below which a person is asked, so that the other answers are right as often as wanted.

    It is the lowest calibrated confidence of these answers such that all answers from it upwards have a mean calibrated
    confidence of at least `target_precision`: the share of them that is expected to be right. Expected, not counted: a
    share counted over the few answers at the top is mostly noise, and the best of many cuts by it is too good to be
    true. For a target of .8, the unasked answers of the draws named above are right .81 of the time by this rule, and
    .75 by counting.

    Args:
        calibration: The fitted curve.
        confidences: What the program stated on the rows to choose on.
        target_precision: Share in (0, 1] of the unasked answers that should be right.

    Returns:
        None if not even the surest answers are expected to reach it: then every answer is asked about.
    """
    sure = list(map(calibration.of, confidences))
    reached = [cut for cut in set(sure) if fmean(one for one in sure if one >= cut) >= target_precision]
    return min(reached, default=None)


def report(confidences: Sequence[float], hits: Sequence[bool], units: Sequence[str]) -> dict[str, Any]:
    """What calibration does to answers, each calibrated by a curve that was fitted without its unit.

    Args:
        confidences: What the program stated.
        hits: Whether it was right.
        units: The family or group of each row (`LabelledFailure.unit`).

    Returns:
        `n`, `auroc` (see `benchmark.confidence`), and for the stated confidence (`before`) and the calibrated one
        (`after`) `ece`, `ece_by_chance` and `brier`. `after` is None where the answers are too few to leave some out.
    """
    after = _out_of_part(confidences, hits, units)
    return {
        "n": len(hits),
        "auroc": _rounded(auroc(confidences, hits)),
        "before": _scores(confidences, hits),
        "after": _scores(after, hits) if after else None,
    }


def _scores(confidences: Sequence[float], hits: Sequence[bool]) -> dict[str, float | None]:
    scores = {
        "ece": ece(confidences, hits),
        "ece_by_chance": ece_by_chance(confidences),
        "brier": brier(confidences, hits),
    }
    return {name: _rounded(score) for name, score in scores.items()}


def _out_of_part(confidences: Sequence[float], hits: Sequence[bool], units: Sequence[str]) -> list[float] | None:
    """Each answer's confidence, calibrated without the answers of its part; None where a fit was not possible."""
    order = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    part = [order[unit] % PARTS for unit in units]
    fitted: dict[int, Calibration] = {}
    for one in set(part):
        others = [place for place, other in enumerate(part) if other != one]
        found = fit([confidences[place] for place in others], [hits[place] for place in others])
        if found is None:
            return None
        fitted[one] = found
    return [fitted[one].of(confidence) for one, confidence in zip(part, confidences, strict=True)]


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, DIGITS)
