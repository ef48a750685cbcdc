"""How far the confidence of answers can be believed: is it as high as the share right, and higher for right answers?

The first is calibration. On few rows even a perfectly calibrated program does not look so, hence the error is quoted with
the one that chance alone would give. A constant confidence can be well calibrated and tells nothing, hence the AUROC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.predict import CauseAnswer
from dspy_reflex.benchmark.statistics import BINS, Interval

PRECISION = 0.9
"""How often the answers that need no person should be right, in the coverage that is quoted."""
DRAWS = 1_000
"""Imagined test sets that the error by chance is read off."""
PERCENTILE = 95


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about the same confidence."""

    n: int
    confidence: float
    """Their mean confidence."""
    right: float
    """The share of them that is right."""


@dataclass(frozen=True, slots=True)
class ConfidenceScore:
    """How far one contender's confidence can be believed, over the answers that came with one."""

    n: int
    ece: float
    """Expected calibration error, over ten bins of equal width."""
    ece_by_chance: float
    """What a perfectly calibrated program with these confidences would stay below on 95 of 100 such test sets."""
    brier: float
    ece_before: float | None
    """Of the confidence that the model stated; None where nothing was calibrated."""
    brier_before: float | None
    auroc: float | None
    """Probability that a right answer is surer than a wrong one; None if all or none are right."""
    auroc_interval: Interval
    """95 %, bootstrap over units."""
    coverage: float
    """Largest share of all failures whose answers, the surest first, are right 90 % of the time.

    The cut is chosen on these very rows: a bound on what a threshold could do, not what the program's own does.
    """
    bins: tuple[Bin, ...]
    """The bins that are not empty, by rising confidence."""
    bins_before: tuple[Bin, ...]
    """Of the confidence that the model stated; empty where nothing was calibrated."""


def confidence_score(
    answers: Sequence[CauseAnswer], right: Sequence[bool], units: Sequence[str]
) -> ConfidenceScore | None:
    """Score the confidence of answers; None if no answer came with one."""
    places = [place for place, answer in enumerate(answers) if answer.confidence is not None]
    if not places:
        return None
    sure = [answers[place].confidence or 0.0 for place in places]
    hits = [right[place] for place in places]
    stated = [one for place in places if (one := answers[place].stated) is not None]
    before = stated if len(stated) == len(places) else None
    return ConfidenceScore(
        n=len(places),
        ece=statistics.ece(sure, hits),
        ece_by_chance=ece_by_chance(sure),
        brier=statistics.brier(sure, hits),
        ece_before=statistics.ece(before, hits) if before else None,
        brier_before=statistics.brier(before, hits) if before else None,
        auroc=auroc(sure, hits),
        auroc_interval=auroc_interval(sure, hits, [units[place] for place in places]),
        coverage=covered(sure, hits) / len(answers),
        bins=bins(sure, hits),
        bins_before=bins(before, hits) if before else (),
    )


def bins(confidences: Sequence[float], right: Sequence[bool]) -> tuple[Bin, ...]:
    """The bins of the calibration error (see `statistics.ece`) that are not empty, by rising confidence."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, hit in zip(confidences, right, strict=True):
        members[min(int(confidence * BINS), BINS - 1)].append((confidence, hit))
    return tuple(_bin(each) for each in members if each)


def ece_by_chance(confidences: Sequence[float], seed: int = 0) -> float:
    """The 95th percentile of the calibration error of a perfectly calibrated program that states these confidences.

    Its answers are right by the toss of coins that fall as often as it says (J. Bröcker, L. Smith: Increasing the
    reliability of reliability diagrams, Weather and Forecasting 22, 2007). The tosses are independent; answers within a
    family are not quite, so that the true percentile lies a little higher.
    """
    import numpy as np

    sure = np.asarray(confidences, dtype=float)
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    rng = np.random.default_rng(seed)
    gaps = (sure - (rng.random(len(sure)) < sure) for _ in range(DRAWS))
    errors = [np.abs(np.bincount(places, weights=gap)).sum() / len(sure) for gap in gaps]
    return float(np.percentile(errors, PERCENTILE))


def auroc(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    """Area under the ROC curve of confidence: the probability that a right answer is surer than a wrong one.

    Equal confidences count half (J. Hanley, B. McNeil: The meaning and use of the area under a ROC curve, Radiology 143,
    1982). None if all or none are right.
    """
    if len(set(right)) < 2:
        return None
    return float(_Pairs(confidences, right).won([[1.0] * len(right)])[0])


def auroc_interval(
    confidences: Sequence[float], right: Sequence[bool], units: Sequence[str], seed: int = 0
) -> Interval:
    """Bootstrap interval of the AUROC; all that is possible where there is none."""
    if len(set(right)) < 2:
        return (0.0, 1.0)
    place = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    member, pairs = [place[unit] for unit in units], _Pairs(confidences, right)
    return statistics.bootstrap(lambda weights: pairs.won(weights[:, member]), len(place), (0.0, 1.0), seed)


def covered(confidences: Sequence[float], right: Sequence[bool], precision: float = PRECISION) -> int:
    """The most answers, the surest first, of which the share `precision` is right; equally sure ones stay together."""
    ordered = sorted(zip(confidences, right, strict=True), key=lambda pair: -pair[0])
    most = hits = 0
    for count, (confidence, hit) in enumerate(ordered, start=1):
        hits += hit
        last_of_its_kind = count == len(ordered) or ordered[count][0] < confidence
        if last_of_its_kind and hits >= precision * count:
            most = count
    return most


class _Pairs:
    """Every pair of a right and a wrong answer, sorted once, so that a resample is a running sum."""

    def __init__(self, confidences: Sequence[float], right: Sequence[bool]) -> None:
        import numpy as np

        sure = np.asarray(confidences, dtype=float)
        self._order = np.argsort(sure, kind="stable")
        self._hit = np.asarray(right, dtype=float)[self._order]
        self._kinds = np.unique(sure[self._order], return_index=True)[1]

    def won(self, weights: Any) -> Any:
        """Share of pairs in which the right answer is the surer one; answers weighted, a resample a row.

        A half where there are no pairs.
        """
        import numpy as np

        drawn = np.asarray(weights)[:, self._order]
        right = np.add.reduceat(drawn * self._hit, self._kinds, axis=1)
        wrong = np.add.reduceat(drawn * (1 - self._hit), self._kinds, axis=1)
        less_sure = np.cumsum(wrong, axis=1) - wrong / 2
        pairs = right.sum(axis=1) * wrong.sum(axis=1)
        return np.where(pairs > 0, (right * less_sure).sum(axis=1) / np.maximum(pairs, 1), 0.5)


def _bin(pairs: Sequence[tuple[float, bool]]) -> Bin:
    n = len(pairs)
    return Bin(n, sum(confidence for confidence, _ in pairs) / n, sum(hit for _, hit in pairs) / n)
