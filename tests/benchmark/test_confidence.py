"""Sureness is judged by what is right: not by less than chance would do, and not by a constant that is right on average."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.confidence import (
    auroc,
    auroc_interval,
    bins,
    confidence_score,
    covered,
    ece_by_chance,
)  # fmt: skip
from dspy_reflex.benchmark.predict import CauseAnswer, Contender, cause_answers
from dspy_reflex.runtime.calibration import Calibration
from tests.benchmark.contest import LABELS, artifact, contender, row, rows, says

SURE = st.lists(st.tuples(st.sampled_from([0.1, 0.25, 0.5, 0.5001, 0.9, 1.0]), st.booleans()), min_size=1, max_size=40)
Sure = list[tuple[float, bool]]
HALF = Calibration(slope=0.5, shift=-1.0, n=72)


def apart(sure: Sure) -> tuple[list[float], list[bool]]:
    """Confidences, and whether they were right."""
    return [one for one, _ in sure], [hit for _, hit in sure]


def tossed(confidences: list[float], seed: int) -> list[bool]:
    """Answers that are right as often as their confidence says."""
    draw = random.Random(seed)
    return [draw.random() < confidence for confidence in confidences]


@given(SURE)
@settings(deadline=None)
def test_auroc_is_that_of_sklearn(sure: Sure) -> None:
    """Ties included; where all or none are right there is none."""
    from sklearn import metrics

    confidences, hits = apart(sure)
    if len(set(hits)) < 2:
        assert auroc(confidences, hits) is None
    else:
        assert auroc(confidences, hits) == pytest.approx(metrics.roc_auc_score(hits, confidences))


def test_a_constant_confidence_tells_nothing_apart() -> None:
    """Although its calibration is perfect."""
    hits = [True, False] * 30
    assert statistics.ece([0.5] * 60, hits) == 0
    assert auroc([0.5] * 60, hits) == 0.5
    assert auroc_interval([0.5] * 60, hits, [str(place) for place in range(60)]) == (0.5, 0.5)


def test_the_interval_of_auroc_is_over_units() -> None:
    """Rows of one family count once."""
    confidences = [random.Random(1).random() for _ in range(1)] + [random.Random(n).random() for n in range(59)]
    hits = tossed(confidences, 2)
    alone = auroc_interval(confidences, hits, [str(place) for place in range(60)])
    twice = auroc_interval(confidences * 2, hits * 2, [str(place) for place in range(60)] * 2)
    assert alone == pytest.approx(twice)
    low, high = alone
    assert 0 < low <= (auroc(confidences, hits) or 0) <= high < 1
    assert auroc_interval(confidences, hits, ["one"] * 60) == (0.0, 1.0)


def test_the_interval_of_auroc_agrees_with_one_written_out() -> None:
    """Draw units, take their rows, and look."""
    draw = random.Random(3)
    confidences = [draw.random() for _ in range(80)]
    hits, units = tossed(confidences, 4), [str(place // 2) for place in range(80)]
    found: list[float] = []
    for _ in range(600):
        places = [2 * unit + half for unit in draw.choices(range(40), k=40) for half in (0, 1)]
        found.append(auroc([confidences[place] for place in places], [hits[place] for place in places]) or 0.5)
    found.sort()
    assert auroc_interval(confidences, hits, units) == pytest.approx((found[15], found[585]), abs=0.03)


def test_a_calibrated_program_stays_below_the_error_of_chance_19_times_of_20() -> None:
    """And one that is too sure does not."""
    draw = random.Random(5)
    confidences = [draw.uniform(0.2, 1.0) for _ in range(120)]
    limit = ece_by_chance(confidences)
    within = [statistics.ece(confidences, tossed(confidences, seed)) <= limit for seed in range(600)]
    assert fmean(within) == pytest.approx(0.95, abs=0.03)
    too_sure = [0.6 * confidence for confidence in confidences]
    assert fmean(statistics.ece(confidences, tossed(too_sure, seed)) <= limit for seed in range(50)) < 0.1


def test_chance_gives_less_on_more_rows_and_nothing_to_the_certain() -> None:
    few, many = ece_by_chance([0.6] * 50), ece_by_chance([0.6] * 5_000)
    assert 0 < many < few / 5
    assert ece_by_chance([1.0, 0.0, 1.0]) == 0
    assert ece_by_chance([0.6] * 50) == few


def test_coverage_by_hand() -> None:
    """The surest two are right, then two of four, then nine of eleven."""
    assert covered([0.9, 0.8, 0.7, 0.6], [True, True, False, False]) == 2
    assert covered([0.9, 0.8], [False, True]) == 0
    assert covered([1 - place / 20 for place in range(11)], [place != 1 for place in range(11)]) == 11
    assert covered([0.9, 0.9, 0.9], [True, True, False]) == 0
    assert covered([0.9, 0.9, 0.9], [True, True, False], 0.6) == 3


@given(SURE, st.sampled_from([0.5, 0.8, 0.9, 1.0]))
def test_coverage_is_the_largest_of_all_cuts(sure: Sure, precision: float) -> None:
    confidences, hits = apart(sure)
    above = [[hit for confidence, hit in sure if confidence >= cut] for cut in set(confidences)]
    assert covered(confidences, hits, precision) == max(
        (len(some) for some in above if sum(some) >= precision * len(some)), default=0
    )


@given(SURE)
def test_the_bins_are_those_of_the_calibration_error(sure: Sure) -> None:
    confidences, hits = apart(sure)
    found = bins(confidences, hits)
    assert sum(each.n for each in found) == len(hits)
    assert [each.confidence for each in found] == sorted(each.confidence for each in found)
    error = sum(each.n * abs(each.confidence - each.right) for each in found) / len(hits)
    assert statistics.ece(confidences, hits) == pytest.approx(error)


def test_what_a_program_states_is_calibrated_at_home_only() -> None:
    """Like its threshold: on another model neither holds."""
    made = artifact(threshold=0.3, calibration=HALF.to_json())
    home = contender(lambda _: says("red", 0.9))
    answers = cause_answers(Contender("mine", "program", made, home.model), rows(3), 1, lambda: None)
    assert {(one.confidence, one.stated, one.needs_review) for one in answers} == {(HALF.of(0.9), 0.9, False)}
    other = artifact(threshold=0.3, calibration=HALF.to_json(), model="fake/2")
    answers = cause_answers(Contender("mine", "program", other, home.model), rows(3), 1, lambda: None)
    assert {(one.confidence, one.stated, one.needs_review) for one in answers} == {(0.9, None, True)}


def test_a_program_is_scored_before_and_after_calibration() -> None:
    """By hand: a third right, .9 sure."""
    cases = [*rows(12), row(12, "red")]
    told = [CauseAnswer("red", HALF.of(0.9), stated=0.9) for _ in range(12)]
    right = [case.root_cause == "red" for case in cases]
    found = confidence_score([*told, CauseAnswer("red", None)], right, [case.unit for case in cases])
    assert found is not None
    assert (found.n, found.coverage, found.auroc) == (12, 0.0, 0.5)
    assert found.ece_before == pytest.approx(0.9 - 1 / 3)
    assert found.ece == pytest.approx(HALF.of(0.9) - 1 / 3)
    assert found.brier_before == pytest.approx((0.01 + 2 * 0.81) / 3)
    assert found.brier < (found.brier_before or 0)
    assert [each.confidence for each in found.bins_before] == pytest.approx([0.9])


def test_coverage_is_of_all_failures() -> None:
    """Also of those whose answer came without a confidence."""
    answers = [CauseAnswer("red", 0.9), CauseAnswer("red", 0.8), CauseAnswer("red", None), CauseAnswer(None, None)]
    found = confidence_score(answers, [True, True, True, False], ["a", "b", "c", "d"])
    assert found is not None
    assert (found.coverage, found.n) == (0.5, 2)


def test_without_calibration_there_is_no_before() -> None:
    answers = [CauseAnswer(label, 0.5) for label in LABELS]
    found = confidence_score(answers, [True, False, False], ["a", "b", "c"])
    assert found is not None
    assert (found.ece_before, found.brier_before, found.bins_before) == (None, None, ())
    assert confidence_score([CauseAnswer("red", None)], [True], ["a"]) is None
