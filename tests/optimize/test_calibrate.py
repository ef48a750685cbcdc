"""The curve is the one the answers were made with; the threshold promises no more than what was asked for."""

from __future__ import annotations

import random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.benchmark.statistics import brier
from dspy_reflex.optimize.calibrate import FEW_ANSWERS, fit, report, threshold_for
from dspy_reflex.runtime.calibration import Calibration, log_odds

SHARES = st.lists(st.floats(0, 1).map(lambda share: round(share, 2)), min_size=1, max_size=40)


def answered(curve: Calibration, count: int, seed: int = 0) -> tuple[list[float], list[bool]]:
    """Stated confidences, and answers that are right as often as the curve says."""
    draw = random.Random(seed)
    stated = [round(draw.uniform(0.2, 1.0), 3) for _ in range(count)]
    return stated, [draw.random() < curve.of(one) for one in stated]


def fitted(stated: list[float], hits: list[bool]) -> Calibration:
    """The curve of answers that have one."""
    found = fit(stated, hits)
    assert found is not None
    return found


@pytest.mark.parametrize("curve", [Calibration(1, 0, 0), Calibration(0.5, -1, 0), Calibration(2, 0.7, 0)])
def test_the_curve_that_made_the_answers_is_found(curve: Calibration) -> None:
    found = fitted(*answered(curve, 5_000))
    assert (found.slope, found.shift) == (pytest.approx(curve.slope, rel=0.1), pytest.approx(curve.shift, abs=0.12))
    assert found.n == 5_000


def test_with_many_answers_it_is_that_of_sklearn() -> None:
    """The prior is worth a handful of them."""
    from sklearn import linear_model

    stated, hits = answered(Calibration(0.5, -1, 0), 5_000)
    plain: Any = linear_model.LogisticRegression(C=1e9).fit([[log_odds(one)] for one in stated], hits)
    found = fitted(stated, hits)
    assert (found.slope, found.shift) == pytest.approx((plain.coef_[0][0], plain.intercept_[0]), abs=0.01)


@pytest.mark.parametrize("curve", [Calibration(1, 0, 0), Calibration(0.3, -1, 0), Calibration(2, 2, 0)])
def test_on_its_own_answers_it_is_as_sure_as_right(curve: Calibration) -> None:
    """However few they are."""
    stated, hits = answered(curve, 72)
    assert fmean(map(fitted(stated, hits).of, stated)) == pytest.approx(fmean(hits), abs=0.001)


def test_few_answers_hardly_bend_the_curve() -> None:
    """Two dozen cannot say that sureness is worth nothing, or everything."""
    stated = [0.3, 0.9] * 12
    against, clear = [True, False] * 12, [False, True] * 12
    assert 0.1 < fitted(stated, against).slope < 1 < fitted(stated, clear).slope < 4


def test_a_constant_confidence_becomes_the_share_right() -> None:
    found = fitted([0.9] * 40, [True, False, False, False] * 10)
    assert found.of(0.9) == pytest.approx(0.25, abs=0.001)
    assert found.slope == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("hits", [[True] * 72, [False] * 72, [], [True, False] * (FEW_ANSWERS // 2 - 1)])
def test_what_says_nothing_gives_no_curve(hits: list[bool]) -> None:
    assert fit([0.1 + place / 100 for place in range(len(hits))], hits) is None


def test_the_answers_above_a_threshold_are_right_as_often_as_asked() -> None:
    """By hand: .9, .8 and .7 have a mean of .8."""
    same = Calibration(1, 0, 72)
    assert threshold_for(same, [0.5, 0.7, 0.9, 0.8], 0.79) == same.of(0.7)
    assert threshold_for(same, [0.5, 0.7, 0.9, 0.8], 0.85) == same.of(0.9)
    assert threshold_for(same, [0.5, 0.7, 0.9, 0.8], 0.1) == same.of(0.5)


def test_where_nothing_is_sure_enough_there_is_no_threshold() -> None:
    """Then every answer is asked about."""
    assert threshold_for(Calibration(1, 0, 72), [0.5, 0.9], 0.95) is None
    assert threshold_for(Calibration(1, -9, 72), [1.0], 0.5) is None
    assert threshold_for(Calibration(1, 0, 72), [], 0.5) is None


def test_equally_sure_answers_are_on_one_side() -> None:
    """Models like to say .7: one of three would do, all three are too many."""
    assert threshold_for(Calibration(1, 0, 72), [0.9, 0.7, 0.7, 0.7], 0.79) == Calibration(1, 0, 72).of(0.9)


@given(SHARES, st.floats(0.05, 0.99))
def test_a_threshold_promises_enough_and_is_the_lowest_that_does(stated: list[float], target: float) -> None:
    curve = Calibration(1.3, 0.4, 72)
    sure = list(map(curve.of, stated))
    cut = threshold_for(curve, stated, target)
    enough = [one for one in sure if fmean(other for other in sure if other >= one) >= target]
    assert cut == min(enough, default=None)


def test_more_precision_asks_about_more() -> None:
    curve = Calibration(1.1, 0.5, 72)
    stated = [place / 100 for place in range(20, 95)]
    cuts = [threshold_for(curve, stated, target) or 2 for target in (0.6, 0.7, 0.8, 0.9, 0.99)]
    assert cuts == sorted(cuts)
    assert len(set(cuts)) == 5


def test_a_report_judges_each_answer_by_the_others() -> None:
    """A curve looks better on the answers that it was fitted on."""
    stated, hits = answered(Calibration(0.5, -1, 0), 240)
    units = [f"unit {place // 3}" for place in range(240)]
    found = report(stated, hits, units)
    assert found["n"] == 240
    assert found["before"]["ece"] > found["before"]["ece_by_chance"]
    assert found["after"]["ece"] < found["after"]["ece_by_chance"]
    own = brier(list(map(fitted(stated, hits).of, stated)), hits)
    assert own < found["after"]["brier"] < found["before"]["brier"]
    assert found == report(stated, hits, units)


def test_a_report_on_too_few_answers_has_no_after() -> None:
    """Without one of its two units there is nothing left to learn from."""
    stated, hits = [0.5, 0.9] * 12, [False, True] * 12
    assert report(stated, hits, ["a", "b"] * 12)["after"] is None
    assert report(stated, [True] * 24, ["a", "b"] * 12)["auroc"] is None


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.99, 1.0]), st.booleans()), min_size=20, max_size=80))
@settings(deadline=None)
def test_any_answers_give_a_rising_curve_or_none(answers: list[tuple[float, bool]]) -> None:
    """Also those that a confidence tells apart perfectly, or the wrong way round."""
    found = fit([stated for stated, _ in answers], [hit for _, hit in answers])
    assert (found is None) == (len({hit for _, hit in answers}) < 2)
    assert found is None or (0.01 < found.slope < 100 and abs(found.shift) < 100)
