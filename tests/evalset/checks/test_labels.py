"""Labels where they do not belong."""

from __future__ import annotations

from dspy_reflex.evalset.checks.labels import absent, named_in_text, unbalanced
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.records.failure import Failure
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.evalset.checks.sets import brief, evalset, told

FULL = (told(1, "red", "a"), told(2, "green", "b"), told(3, "blue", "c"))


def test_an_absent_label_is_named() -> None:
    """The label set stays whole."""
    (found,) = absent(evalset(FULL[0]))
    assert found.text == "no row is green, blue; the label set stays whole, so a program may answer it"
    assert not list(absent(evalset(*FULL)))


def test_a_label_in_the_text_is_named_with_its_line_whole_words_only() -> None:
    """It may be a leak, it may be a log; `bored` is neither."""
    found = list(named_in_text(evalset(told(4, "red", "GREEN light, bored, blue"))))
    assert [brief(one) for one in found] == [("label-in-text", "warning", "a.jsonl:4")] * 2
    assert ["'green'" in one.text for one in found] == [True, False]


def test_a_synonym_of_a_label_gives_it_away_as_well() -> None:
    """Or a set would be clean because its writer wrote `hallucinated` for overconfidence."""
    rows = (told(1, "overconfidence", "it Hallucinated a price"), told(2, "context_loss", "a knowledge gap"))
    found = list(named_in_text(EvalSet("mine", load_taxonomy(), {"all": rows})))
    assert [(one.where, one.text.split(", which says ")[1].split(";")[0]) for one in found] == [
        ("a.jsonl:1", "overconfidence"),
        ("a.jsonl:2", "knowledge_gap"),
    ]


def test_a_label_in_a_field_that_is_never_rendered_is_no_leak() -> None:
    """Nobody reads it."""
    hidden = Failure.model_validate({"task": "t", "actual_outcome": "a", "reason": "blue"})
    assert not list(named_in_text(evalset(told(4, "red", "").model_copy(update={"failure": hidden}))))


def test_a_split_in_which_one_label_prevails_is_named_and_rows_without_a_label_do_not_count() -> None:
    """Guessing the frequent label would look good there."""
    many = tuple(told(number, "red", str(number)) for number in range(10, 14))
    found = list(unbalanced(evalset(*FULL, test=(*FULL, *many), controls=(told(9, None, "ok"),))))
    assert [brief(one) for one in found] == [("class-counts", "warning", "mine/test")]
    assert found[0].text.startswith("5 rows are red, 1 are ")
