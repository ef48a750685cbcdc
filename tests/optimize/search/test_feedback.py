"""What a metric says in words, for optimizers that read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
import pytest

from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import CauseMetric, rule_metric
from dspy_reflex.optimize.search.feedback import FeedbackMetric, cause_feedback, feedback_for, rule_feedback
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import PROGRAMS, labelled

SIX = load_taxonomy("six")


@pytest.fixture(scope="module")
def rule(small: Path) -> Any:
    """An example of the rule program."""
    return examples_for("rule", labelled(small, "val"), 0)[0]


def about(gold: str, told: str | None) -> str:
    """Feedback on one answer."""
    return cause_feedback(SIX, dspy.Example(root_cause=gold), dspy.Prediction(root_cause=told))


def test_a_right_answer_is_said_to_be_right() -> None:
    """In two lines; there is nothing to explain."""
    assert about("context_loss", "context_loss") == "root_cause, as labelled: context_loss\nThat was the answer."


def test_a_wrong_answer_is_explained_by_the_taxonomy() -> None:
    """Both meanings, and the items of the guide that name both; none that names one of them."""
    label, told, right, wrong, heading, *ties = about("context_loss", "reasoning_error").splitlines()
    assert label == "root_cause, as labelled: context_loss"
    assert told == "The answer was reasoning_error."
    assert right.startswith("context_loss: ")
    assert wrong.startswith("reasoning_error: ")
    assert heading == "What tells them apart:"
    assert len(ties) >= 3
    assert all("context_loss" in tie and "reasoning_error" in tie for tie in ties)
    assert "- A rule, tool description or plan stands in the prompt and is not followed: context_loss." in ties[0]


def test_each_tie_is_whole_and_in_a_line_of_its_own() -> None:
    """Lines that the guide breaks are joined."""
    (tie,) = about("overconfidence", "tool_failure").splitlines()[5:]
    assert tie.startswith("- A search comes back empty")
    assert tie.endswith("nothing could have succeeded after the break.")


@pytest.mark.parametrize("told", [None, "", "the weather"])
def test_an_answer_that_is_none_is_told_apart_from_nothing(told: str | None) -> None:
    """The right cause is explained alone."""
    said = about("context_loss", told)
    assert "context_loss: " in said
    assert "What tells them apart" not in said


def test_a_taxonomy_without_a_guide_has_definitions_to_tell() -> None:
    """As a user's own may be."""
    bare = SIX.model_copy(update={"guide": ""})
    said = cause_feedback(bare, dspy.Example(root_cause="context_loss"), dspy.Prediction(root_cause="none of them"))
    assert len(said.splitlines()) == 3


def test_a_rule_hears_what_people_wrote_and_what_the_score_missed(rule: Any) -> None:
    """Each part that is not perfect, in the words of the rule score."""
    row = rule.dspy_labelled
    said = rule_feedback(rule, dspy.Prediction(component="NONE", rule="Be careful.")).splitlines()
    assert said[0] == f"component, as labelled: {row.component}"
    assert said[1] == f"rule, as labelled: {row.reference_rule}"
    assert said[2].startswith("The proposed rule scored 0.")
    for part in (f"belongs in {row.component}, not in NONE", "should also mention", "Say when", "Say how far"):
        assert part in said[2]


def test_no_rule_is_feedback_too(rule: Any) -> None:
    """An answer that could not be used."""
    assert "There is no rule; write one." in rule_feedback(rule, dspy.Prediction())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_score_is_the_metrics_own_whoever_asks(program: str, small: Path) -> None:
    """GEPA asks for the score with and without a trace, and wants the same."""
    plain = CauseMetric({"tool_failure": 0.5}) if program == "root_cause" else rule_metric
    metric = FeedbackMetric(plain, feedback_for(program, SIX))
    for example in examples_for(program, labelled(small, "val"), 0):
        told = dspy.Prediction(root_cause="tool_failure", rule="Before a call, check it at most twice.")
        asked = [metric(example, told), metric(example, told, None), metric(example, told, [], "predict", [])]
        assert {one.score for one in asked} == {plain(example, told)}
        assert len({one.feedback for one in asked}) == 1


def test_weights_are_left_out_where_answers_to_one_row_are_compared() -> None:
    """Costs stay."""
    metric = CauseMetric({"a": 0.5, "b": 2.0}, [("a", "b", 4.0)]).unweighted()
    scores = [metric(dspy.Example(root_cause=gold), dspy.Prediction(root_cause=told)) for gold, told in
              (("a", "a"), ("b", "b"), ("a", "b"), ("b", "a"))]  # fmt: skip
    assert scores == [1.0, 1.0, 0.0, 0.75]
