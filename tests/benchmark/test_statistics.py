"""Scores equal those of scikit-learn and statsmodels; intervals are seeded, paired and over units."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.benchmark import statistics

LABELS = ("a", "b", "c")
PAIRS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from((*LABELS, None))), min_size=1, max_size=60)
SURE = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)
Pairs = list[tuple[str, str | None]]


def noisy(share: float, seed: int, count: int = 200) -> tuple[list[str], list[str | None]]:
    """Gold labels, and answers of which about this share is right."""
    draw = random.Random(seed)
    gold = [draw.choice(LABELS) for _ in range(count)]
    return gold, [label if draw.random() < share else draw.choice(LABELS) for label in gold]


@given(PAIRS)
@settings(deadline=None)
def test_scores_per_class_are_those_of_sklearn(pairs: Pairs) -> None:
    """No answer is a label that nobody asked about."""
    from sklearn import metrics

    sk: Any = metrics
    gold, answers = [one for one, _ in pairs], [other or "none" for _, other in pairs]
    expected = sk.precision_recall_fscore_support(gold, answers, labels=list(LABELS), zero_division=0)
    ours = statistics.per_class(gold, [other for _, other in pairs], LABELS)
    for place, name in enumerate(("precision", "recall", "f1", "support")):
        assert [getattr(score, name) for score in ours] == pytest.approx(list(expected[place]))
    present = sorted(set(gold))
    macro = sk.f1_score(gold, answers, labels=present, average="macro", zero_division=0)
    assert statistics.macro_f1(gold, [other for _, other in pairs]) == pytest.approx(macro)
    assert statistics.accuracy(gold, [other for _, other in pairs]) == pytest.approx(sk.accuracy_score(gold, answers))


@given(PAIRS, st.randoms(use_true_random=False))
def test_macro_f1_does_not_depend_on_the_order_of_rows(pairs: Pairs, shuffler: random.Random) -> None:
    """Threads may finish in any order."""
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    scores = [statistics.macro_f1([one for one, _ in some], [other for _, other in some]) for some in (pairs, shuffled)]
    assert scores[0] == pytest.approx(scores[1])


def test_macro_f1_averages_over_the_labels_in_the_gold() -> None:
    """An answer outside them is a miss and no class of its own."""
    assert statistics.macro_f1(["a", "a"], ["a", "z"]) == pytest.approx(2 / 3)


def test_the_hit_rate_accepts_what_a_reader_would() -> None:
    """And never no answer."""
    assert statistics.hit_rate(["a", "a", "a"], [["b"], ["b"], []], ["b", "c", None]) == pytest.approx(1 / 3)


@given(SURE)
def test_calibration_scores_are_in_the_unit_interval(sure: list[tuple[float, bool]]) -> None:
    """Whatever the confidences."""
    confidences, right = [one for one, _ in sure], [hit for _, hit in sure]
    assert 0 <= statistics.ece(confidences, right) <= 1
    assert 0 <= statistics.brier(confidences, right) <= 1


def test_calibration_scores_by_hand() -> None:
    """Two bins: 0.95 and 0.85 sure, half right in each."""
    confidences, right = [0.95, 0.95, 0.85, 0.85], [True, False, True, False]
    assert statistics.ece(confidences, right) == pytest.approx((0.45 * 2 + 0.35 * 2) / 4)
    assert statistics.brier(confidences, right) == pytest.approx((0.05**2 + 0.95**2 + 0.15**2 + 0.85**2) / 4)
    assert statistics.ece([1.0, 1.0], [True, True]) == 0


def test_brier_is_that_of_sklearn() -> None:
    """On any numbers."""
    from sklearn import metrics

    sk: Any = metrics
    draw = random.Random(3)
    confidences, right = [draw.random() for _ in range(50)], [draw.random() < 0.5 for _ in range(50)]
    assert statistics.brier(confidences, right) == pytest.approx(sk.brier_score_loss(right, confidences))


@given(PAIRS, st.integers(1, 10))
@settings(max_examples=25, deadline=None)
def test_an_interval_contains_its_point(pairs: Pairs, units: int) -> None:
    """On few and lopsided rows, too, and stays in the unit interval."""
    gold, answers = [one for one, _ in pairs], [other for _, other in pairs]
    names = [str(place % units) for place in range(len(pairs))]
    low, high = statistics.interval(gold, answers, names)
    assert -1e-9 <= low - 1e-9 <= statistics.macro_f1(gold, answers) <= high + 1e-9 <= 1 + 2e-9


def test_an_interval_is_the_same_every_time_and_moves_with_the_seed() -> None:
    """Law 9."""
    gold, answers = noisy(0.6, 1)
    units = [str(place // 2) for place in range(200)]
    first = statistics.interval(gold, answers, units)
    assert first == statistics.interval(gold, answers, units)
    assert first != statistics.interval(gold, answers, units, seed=1)


def test_the_bootstrap_agrees_with_one_written_out() -> None:
    """Resampling units in plain Python gives about the same interval."""
    gold, answers = noisy(0.6, 2, 90)
    units = [str(place // 3) for place in range(90)]
    draw, scores = random.Random(5), list[float]()
    for _ in range(600):
        places = [3 * unit + step for unit in draw.choices(range(30), k=30) for step in range(3)]
        scores.append(statistics.macro_f1([gold[place] for place in places], [answers[place] for place in places]))
    scores.sort()
    low, high = statistics.interval(gold, answers, units)
    assert (low, high) == pytest.approx((scores[14], scores[584]), abs=0.03)


def test_rows_of_one_unit_count_once() -> None:
    """The same 40 rows are less evidence when they come from 4 families."""
    gold, answers = noisy(0.5, 4, 40)
    order = sorted(range(40), key=lambda place: gold[place] == answers[place])
    few = statistics.interval([gold[p] for p in order], [answers[p] for p in order], [str(p // 10) for p in range(40)])
    many = statistics.interval(gold, answers, [str(place) for place in range(40)])
    assert few[1] - few[0] > 1.5 * (many[1] - many[0])


def test_one_unit_says_nothing() -> None:
    """There is nothing to resample."""
    assert statistics.interval(["a", "b"], ["a", "b"], ["u", "u"]) == (0.0, 1.0)
    assert statistics.difference_interval(["a", "b"], ["a", "b"], ["b", "a"], ["u", "u"]) == (-1.0, 1.0)
    assert statistics.mean_difference_interval([0.5, 0.5], ["u", "u"]) == (-1.0, 1.0)


def test_differences_are_paired() -> None:
    """Against itself there is no doubt; against a worse one less than unpaired intervals would leave."""
    gold, good = noisy(0.8, 6)
    worse = [answer if place % 4 else None for place, answer in enumerate(good)]
    units = [str(place) for place in range(200)]
    assert statistics.difference_interval(gold, good, good, units) == (0.0, 0.0)
    low, high = statistics.difference_interval(gold, good, worse, units)
    assert 0 < low < statistics.macro_f1(gold, good) - statistics.macro_f1(gold, worse) < high


def test_the_interval_of_a_mean_covers_units_of_any_size() -> None:
    """The mean is over rows, the resampling over units."""
    low, high = statistics.mean_interval([1.0] * 6 + [0.0] * 2, ["a"] * 3 + ["b"] * 3 + ["c"] * 2)
    assert low < 0.75 < high == 1.0


def test_mcnemar_is_that_of_statsmodels() -> None:
    """Exact and two-sided."""
    from statsmodels.stats import contingency_tables

    tables: Any = contingency_tables
    first = [True] * 9 + [False] * 2 + [True] * 5 + [False] * 4
    second = [False] * 9 + [True] * 2 + [True] * 5 + [False] * 4
    assert statistics.mcnemar(first, second) == pytest.approx(tables.mcnemar([[5, 9], [2, 4]], exact=True).pvalue)
    assert statistics.mcnemar(first, first) == 1.0


def test_holms_correction_is_that_of_statsmodels() -> None:
    """In the order given, ties and ones among them."""
    from statsmodels.stats import multitest

    tests: Any = multitest
    draw = random.Random(8)
    for count in range(1, 13):
        p_values = [draw.choice([1.0, 0.01, draw.random(), draw.random() / 50]) for _ in range(count)]
        expected = tests.multipletests(p_values, method="holm")[1]
        assert statistics.holm(p_values) == pytest.approx(tuple(expected))
    assert statistics.holm([]) == ()


def test_an_interval_on_two_hundred_rows_takes_less_than_two_seconds() -> None:
    """2,000 resamples of macro-F1."""
    gold, answers = noisy(0.6, 7)
    units = [str(place) for place in range(200)]
    statistics.interval(gold, answers, units)  # imports scipy
    started = time.perf_counter()
    statistics.interval(gold, answers, units)
    assert time.perf_counter() - started < 2


def test_an_interval_that_would_miss_its_point_is_widened_to_touch_it() -> None:
    """Ten labels in a ring: a resample drops labels and scores higher nearly every time."""
    gold = [f"l{place // 2}" for place in range(20)]
    answers = [f"l{(place // 2 + place % 2) % 10}" for place in range(20)]
    low, high = statistics.interval(gold, answers, gold)
    assert low == statistics.macro_f1(gold, answers) == 0.5 < high
