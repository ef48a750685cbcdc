"""Labels that contradict their own row."""

from __future__ import annotations

from dspy_reflex.evalset.checks.annotation import choices, evidence
from dspy_reflex.records.failure import Failure
from tests.evalset.checks.sets import brief, evalset, told


def test_a_quote_must_be_in_the_text_word_for_word() -> None:
    """Made-up evidence would teach programs to make evidence up."""
    good = told(1, "red", "the wall is red now", evidence=("wall is red",))
    bad = told(2, "red", "the wall is red now", evidence=("the wall was red", "the walls are red"))
    found = list(evidence(evalset(good, bad)))
    assert [brief(one) for one in found] == [("evidence", "error", "a.jsonl:2")] * 2


def test_a_quote_typed_on_one_line_may_run_over_a_line_break() -> None:
    """As `data label` takes it."""
    assert not list(evidence(evalset(told(1, "red", "the wall\nis red now", evidence=("the wall is red",)))))


def test_a_quote_from_deep_inside_the_context_counts_with_its_own_quotation_marks() -> None:
    """A prompt shows nested values as JSON, in which marks are escaped; people quote what was said."""
    context = {"steps": [{"say": 'the "red" one\nof two'}]}
    row = told(1, "red", "", evidence=('the "red" one\nof',))
    deep = row.model_copy(
        update={"failure": Failure.model_validate({"task": "t", "actual_outcome": "a", "context": context})}
    )
    assert not list(evidence(evalset(deep)))


def test_the_same_label_twice_is_an_error() -> None:
    """It would count as two answers."""
    assert [brief(one) for one in choices(evalset(told(1, "red", "a", also_acceptable=("red",))))] == [
        ("choices", "error", "a.jsonl:1")
    ]
