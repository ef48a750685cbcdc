"""The gate: what wins, what is refused and why, and how often it errs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.promotion_errors import TRUTHS, promotions
from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.predict import CauseAnswer, RuleProposed
from dspy_reflex.benchmark.promote import (
    MARGIN,
    MIN_UNITS,
    Comparison,
    compare,
    compare_causes,
    compare_rules,
    decide,
    rows_digest,
)
from dspy_reflex.benchmark.rule_score import RuleScore
from dspy_reflex.benchmark.runner import benchmark_cause, benchmark_rule
from dspy_reflex.runtime.lm.model import Completion
from tests.benchmark.contest import LABELS, contender, knows, proposes, row, rows, says

ROOT = Path(__file__).parents[2]
GOLD = [LABELS[place % 3] for place in range(60)]
UNITS = [str(place) for place in range(60)]
Right = Callable[[int, str], bool]


def told(right: Right, tokens: int = 100) -> list[CauseAnswer]:
    """Answers that are right where a function of place and label says so; else none."""
    return [
        CauseAnswer(label if right(place, label) else None, None, tokens=tokens) for place, label in enumerate(GOLD)
    ]


def compared(candidate: Right, current: Right, tokens: int = 100) -> Comparison:
    """A candidate beside a current program whose answers take 100 tokens."""
    return compare_causes(GOLD, UNITS, told(candidate, tokens), told(current))


def always(_: int, __: str) -> bool:
    """Right every time."""
    return True


def half(place: int, _: str) -> bool:
    """Right every other time, on every label."""
    return place % 2 == 0


def but_red(_: int, label: str) -> bool:
    """Right on all but one label."""
    return label != "red"


def half_but_red(place: int, label: str) -> bool:
    """Right on one label, and on half of the others."""
    return label == "red" or place % 2 == 0


def found(low: float, high: float, *, tokens: float | None = 100, units: int = 60) -> Comparison:
    """A comparison with this interval; the current program takes 100 tokens an answer."""
    middle = (low + high) / 2
    return Comparison("macro-F1", 0.5 + middle, 0.5, middle, (low, high), 180, units, False, tokens, 100)


def test_a_comparison_holds_what_the_statistics_say() -> None:
    one, other = told(always, 80), told(half_but_red)
    new, old = [answer.label for answer in one], [answer.label for answer in other]
    result = compare_causes(GOLD, UNITS, one, other)
    assert result.difference == statistics.macro_f1(GOLD, new) - statistics.macro_f1(GOLD, old)
    assert result.interval == statistics.difference_interval(GOLD, new, old, UNITS)
    assert result.mcnemar_p == pytest.approx(2 * 0.5**20)
    assert (result.n, result.units, result.same) == (60, 60, False)
    assert result.saved == pytest.approx(0.2)


def test_every_class_has_its_change_of_recall_and_a_p_value_corrected_for_their_number() -> None:
    changes = {change.label: change for change in compared(but_red, half_but_red).classes}
    assert list(changes) == sorted(LABELS)
    red, blue = changes["red"], changes["blue"]
    assert (red.n, red.before, red.after, red.broken) == (20, 1.0, 0.0, True)
    assert red.p == pytest.approx(3 * 2 * 0.5**20)
    assert (blue.before, blue.after, blue.broken) == (0.5, 1.0, False)
    assert blue.p == pytest.approx(2 * 2 * 0.5**10)


def test_a_better_candidate_wins() -> None:
    decision = decide(compared(always, half))
    assert decision.promoted
    assert decision.reason.startswith("it is better: macro-F1 +0.3")


def test_a_worse_one_does_not() -> None:
    assert not decide(compared(half, always)).promoted


def test_the_same_answers_are_a_copy_and_called_so() -> None:
    decision = decide(compared(half, half))
    assert (decision.promoted, decision.reason.startswith("it is an A/A copy")) == (False, True)


def test_the_same_answers_for_less_are_no_copy() -> None:
    decision = decide(compared(half, half, tokens=90))
    assert decision.promoted
    assert decision.reason.startswith("it takes 10% fewer tokens and is not worse by more than 0.03")


def test_a_candidate_that_breaks_a_class_is_refused_though_it_is_better_in_all() -> None:
    result = compared(but_red, lambda place, label: place % 5 == 0 or label == "red")
    assert result.interval[0] > 0
    decision = decide(result)
    assert not decision.promoted
    assert decision.reason.startswith("it breaks red (recall 1.00 to 0.00, p=0.000); macro-F1 +0.")


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (found(-0.02, 0.06, tokens=96), "it is not cheaper by 5% (tokens -4%)"),
        (found(-0.02, 0.06, tokens=None), "the model did not say how many tokens its answers took"),
        (found(-0.04, 0.06, tokens=50), "+0.060]; it may be worse by more than 0.03"),
        (found(-0.04, 0.06, tokens=120), "it may be worse by more than 0.03 and it is not cheaper by 5% (tokens +20%)"),
        (found(0.1, 0.2, units=MIN_UNITS - 1), "19 units (families or groups) are no evidence; 20 are needed"),
    ],
)
def test_a_refusal_says_what_was_missing(comparison: Comparison, said: str) -> None:
    decision = decide(comparison)
    assert not decision.promoted
    assert said in decision.reason


def test_a_cheaper_one_wins_within_the_margin_that_was_stated() -> None:
    close = found(-0.029, 0.01, tokens=95)
    assert decide(close).promoted
    assert decide(close, margin=0.05).promoted
    assert not decide(close, margin=0.02).promoted
    assert not decide(close, margin=0.0).promoted


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(1, 1e6) | st.none(), st.floats(0, 1))
def test_nothing_wins_that_may_be_worse_by_more_than_the_margin(
    low: float, width: float, tokens: float | None, margin: float
) -> None:
    decision = decide(found(low, low + width, tokens=tokens), margin)
    assert decision.reason
    if decision.promoted:
        assert low > -margin or low > 0


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from((*LABELS, None))), min_size=60, max_size=60))
@settings(max_examples=15)
def test_two_programs_never_both_beat_each_other(pairs: list[tuple[str, str | None]]) -> None:
    one, other = [[CauseAnswer(pair[side], None) for pair in pairs] for side in (0, 1)]
    both = [decide(compare_causes(GOLD, UNITS, *sides)).promoted for sides in ((one, other), (other, one))]
    assert not all(both)


def test_tokens_are_unknown_when_an_answer_lacks_them() -> None:
    """A sum over some of the answers would flatter."""
    silent = [replace(told(half)[0], tokens=0), *told(half)[1:]]
    assert compare_causes(GOLD, UNITS, silent, told(always)).saved is None


def proposed(total: float, tokens: int = 100) -> RuleProposed:
    """A rule with this score."""
    return RuleProposed("SOUL", f"rule of {total}", RuleScore(total, ()), tokens=tokens)


def test_rules_are_compared_by_the_mean_of_their_scores() -> None:
    better = compare_rules(UNITS, [proposed(0.6 + place % 3 / 10) for place in range(60)], [proposed(0.5)] * 60)
    assert (better.metric, better.mcnemar_p, better.classes) == ("rule score", None, ())
    assert better.difference == pytest.approx(0.2)
    assert 0.15 < better.interval[0] < 0.2 < better.interval[1] < 0.25
    assert decide(better).promoted


def test_the_same_rules_are_a_copy() -> None:
    same = compare_rules(UNITS, [proposed(0.5)] * 60, [proposed(0.5)] * 60)
    assert decide(same).reason.startswith("it is an A/A copy")


def test_other_rules_with_the_same_scores_are_no_copy_and_not_better() -> None:
    other = [replace(proposed(0.5), rule="another") for _ in range(60)]
    assert "not shown to be better" in decide(compare_rules(UNITS, other, [proposed(0.5)] * 60)).reason


def costly(completion: Completion, tokens: int) -> Completion:
    """The same answer with what it took."""
    return replace(completion, input_tokens=tokens - 1, output_tokens=1)


def test_a_benchmark_is_compared_by_the_names_in_it() -> None:
    """Wherever they stand; tokens are those that the models counted."""
    programs = [
        contender(lambda prompt: costly(says("red"), 50), "plain", "uncompiled"),
        contender(lambda prompt: costly(knows(prompt), 200), "mine"),
    ]
    result = compare(benchmark_cause(rows(30), programs, baselines=False), "mine", "plain")
    assert (result.candidate, result.candidate_tokens, result.current_tokens) == (1.0, 200, 50)
    assert decide(result).promoted


def test_so_is_a_benchmark_of_rules() -> None:
    texts = {"mine": "When a call fails, retry at most twice, then report it.", "old": "Be good."}
    programs = [
        contender(lambda _, text=text: costly(proposes("SOUL", text), 10), name, program="rule")
        for name, text in texts.items()
    ]
    result = compare(benchmark_rule(rows(30), programs, baselines=False), "mine", "old")
    assert (result.difference > 0, result.candidate_tokens) == (True, 10)


def test_a_test_set_is_known_by_its_rows_in_any_order() -> None:
    some = rows(6)
    assert rows_digest(some) == rows_digest(some[::-1])
    assert rows_digest(some) != rows_digest(some[:5])
    assert rows_digest(some[:5]) != rows_digest([*some[:4], row(77)])


def test_at_most_one_in_twenty_of_two_hundred_equal_candidates_wins() -> None:
    """The promise of the gate, through the very function that decides."""
    assert 0 < sum(promotions(TRUTHS["equal"], 200)) <= 10


def test_half_of_the_candidates_that_are_better_by_a_tenth_win() -> None:
    """A gate that let nothing through would keep the promise above, too."""
    assert 0.4 <= sum(promotions(TRUTHS["better by 0.10"], 60)) / 60 <= 0.65


def test_hardly_one_that_breaks_a_class_wins_however_much_better_it_is() -> None:
    assert sum(promotions(TRUTHS["better by 0.20, one class broken"], 40)) <= 2


def test_the_committed_error_rates_keep_the_promise() -> None:
    measured = json.loads((ROOT / "experiments" / "promotion" / "result.json").read_text(encoding="utf-8"))
    assert measured["margin"] == MARGIN
    assert set(measured["promoted"]) == set(TRUTHS)
    false = (
        "equal",
        "equal, families fall together",
        "worse by the margin, cheaper",
        "better by 0.20, one class broken",
    )
    assert all(measured["promoted"][name]["share"] <= 0.05 for name in false)
