"""Oddities that do not keep a data set from being used."""

from __future__ import annotations

from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure
from dspy_reflex.evalset.warnings import warnings_for
from dspy_reflex.records.failure import Failure
from tests.evalset.rows import COLOURS, row

FULL = (row(1, "red"), row(2, "green"), row(3, "blue"))


def warned(*extra: LabelledFailure, **splits: tuple[LabelledFailure, ...]) -> list[str]:
    """The warnings about a set that has every label and these rows."""
    return warnings_for(EvalSet("mine", COLOURS, {"train": (*FULL, *extra), **splits}))


def test_a_sound_set_gives_no_warning() -> None:
    """Or nobody would read them."""
    assert warned(row(4, group="g"), row(5, group="g")) == []


def test_an_absent_label_is_named() -> None:
    """The label set stays whole."""
    assert warnings_for(EvalSet("mine", COLOURS, {"train": FULL[:1]})) == [
        "mine: no row is green, blue; the label set stays whole, so a program may answer it"
    ]


def test_a_label_in_the_text_is_named_with_its_line_whole_words_only() -> None:
    """It may be a leak, it may be a log; `bored` is neither."""
    leaky = Failure(id="x", task="t", actual_outcome="GREEN light, then bored", context={"note": "see blue"})
    texts = warned(row(4).model_copy(update={"failure": leaky, "where": "a.jsonl:4"}))
    assert texts == [
        "a.jsonl:4: the text contains the label 'blue'; it may be a leak, it may be a log",
        "a.jsonl:4: the text contains the label 'green'; it may be a leak, it may be a log",
    ]


def test_a_label_in_a_field_that_is_never_rendered_is_no_leak() -> None:
    """Nobody reads it."""
    hidden = Failure.model_validate({"task": "t", "actual_outcome": "a", "reason": "blue"})
    assert warned(row(4).model_copy(update={"failure": hidden})) == []


def test_texts_and_units_in_two_splits_are_named() -> None:
    """They would be tested on what they were trained on."""
    twin = row(1, "red", where="test.jsonl:1")
    assert warned(test=(twin,)) == ["the same failure is in  and test.jsonl:1; keep one of them"]
    assert warned(row(4, family="fam"), test=(row(5, family="fam"),)) == [
        "'fam' is in the splits train and test; keep a family or group in one split"
    ]
