"""A circumstance that gives the label away is found, and one that does not is not."""

from __future__ import annotations

from dspy_reflex.evalset.checks.shortcut import measure_shortcuts, shortcuts
from dspy_reflex.evalset.labelled import LabelledFailure
from tests.evalset.checks.sets import brief, evalset, told

CAUSES = ("red", "green", "blue")


def rows(**fields: list[str]) -> tuple[LabelledFailure, ...]:
    """Ninety rows of three causes in thirty families, with a text that says nothing and these fields by cause."""
    return tuple(
        told(
            number, CAUSES[number % 3], f"event {number * 7919 % 97}", family=f"fam{number // 3}",
            **{name: values[number % 3] for name, values in fields.items()},
        )
        for number in range(90)
    )  # fmt: skip


def test_nothing_is_found_where_nothing_gives_the_label_away() -> None:
    """Or every set would be suspect."""
    assert not list(shortcuts(evalset(*rows())))


def test_a_source_that_has_one_label_is_found() -> None:
    """As in pooled public sets, where the source alone tells most labels."""
    (found,) = shortcuts(evalset(*rows(source=["a", "b", "c"])))
    assert brief(found) == ("shortcut", "warning", "mine")
    assert found.text.startswith("source alone tells 100% of the labels, the constant answer 33% (n=90)")


def test_length_that_goes_with_the_label_is_found() -> None:
    """Long rows of one cause and short ones of another."""
    padded = tuple(
        told(n, CAUSES[n % 3], "word " * (20 + 40 * (n % 3) + n // 9), family=f"fam{n // 3}") for n in range(90)
    )
    assert [found.text.split(" ")[0] for found in shortcuts(evalset(*padded))] == ["length"]
    assert measure_shortcuts(padded).alone["length"] > 0.8


def test_too_few_rows_say_nothing() -> None:
    """The standard error alone is over five points."""
    assert not list(shortcuts(evalset(*rows(source=["a", "b", "c"])[:30])))
