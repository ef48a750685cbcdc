"""Predictions, counted."""

from __future__ import annotations

from dspy_reflex.runs import answers
from dspy_reflex.runs.result import Prediction
from tests.runs.folders import PREDICTIONS

ROWS = [Prediction.model_validate(each) for each in PREDICTIONS]


def test_the_confusion_matrix_counts_every_row_once() -> None:
    """Silence has a column."""
    labels = answers.labels_of(ROWS, ("red", "green", "blue"))
    assert answers.confusion(ROWS, labels) == [[2, 1, 0, 0], [0, 1, 1, 1], [0, 0, 2, 0]]


def test_a_label_that_nobody_knew_is_counted_too() -> None:
    """A row or a column more, rather than a row fewer."""
    odd = [*ROWS, Prediction(id="x", gold="mauve", told="red")]
    labels = answers.labels_of(odd, ("red", "green", "blue"))
    assert labels == ["red", "green", "blue", "mauve"]
    assert sum(map(sum, answers.confusion(odd, labels))) == len(odd)


def test_mistakes_come_surest_first_and_silence_apart() -> None:
    """A miss without an answer is no wrong answer."""
    assert [one.id for one in answers.mistakes(ROWS)] == ["v4", "v2"]
    assert [one.id for one in answers.unusable(ROWS)] == ["v5"]


def test_rules_are_neither_right_nor_wrong() -> None:
    """They have a score; the worst comes first."""
    rows = [Prediction(id="a", gold="red", score=0.9), Prediction(id="b", gold="red", score=0, problem="refusal")]
    assert (answers.judged(rows), answers.mistakes(rows), answers.unusable(rows)) == ([], [], [])
    assert answers.reliability_line(rows) == ""
    assert [one.id for one in answers.scored(rows)] == ["b", "a"]


def test_only_usable_answers_with_a_confidence_are_sure() -> None:
    """A confidence without an answer is none."""
    rows = [*ROWS, Prediction(id="x", gold="red", confidence=0.9), Prediction(id="y", gold="red", told="red")]
    confidences, right = answers.sure(rows)
    assert (len(confidences), sum(right)) == (7, 5)
