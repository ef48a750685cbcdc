"""Rules written from demos, rule books and remedies."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.records.taxonomy import RootCause, Taxonomy
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import rule_inputs
from dspy_reflex.runtime.lm.offline import answer
from dspy_reflex.runtime.lm.offline.features import OBSERVATIONS, features_of, words_of
from dspy_reflex.runtime.lm.offline.rulebook import Entry, collect, read_book, without_books, write_book
from dspy_reflex.runtime.parse import parse
from dspy_reflex.runtime.render import render
from tests.runtime.programs import HOUSE, any_text, published

VALVE = "Before work on a pipe, close the valve, and check it twice."
TAP = "When a tap drips, change its washer at once, or call within a day."
PLUG = "Before opening a lamp, pull the plug, and test for current once."

words = st.from_regex(r"[a-z]{1,8}( [a-z]{1,8})?", fullmatch=True) | st.sampled_from(
    [f"<{each}>" for each in OBSERVATIONS]
)
entries = st.lists(
    st.builds(
        Entry,
        key=st.sampled_from([*HOUSE.labels, "tool:timeout", "any"]),
        place=st.sampled_from(["SOUL", "AGENTS", "TOOLS", ""]),
        words=st.lists(words, min_size=1, max_size=5).map(tuple),
        rule=st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=40),
    ),
    max_size=4,
)


def demo(report: str, cause: str, rule: str, component: str = "TOOLS") -> dict[str, str]:
    """A worked example of the rule program."""
    inputs = rule_inputs([{"task": "t", "actual_outcome": report}], cause, [])
    return inputs | {"component": component, "rule": rule}


DEMOS = [
    demo("the pipe under the sink burst", "leak", VALVE, "AGENTS"),
    demo("the tap in the garden drips", "leak", TAP),
    demo("the lamp gave a shock", "short_circuit", PLUG),
]


def proposed(
    report: str, cause: str = "leak", there: tuple[str, ...] = (), program: Artifact | None = None
) -> tuple[str, str]:
    """Rule and component for a failure."""
    one = program or published("rule", demos=DEMOS)
    values = rule_inputs([{"task": "t", "actual_outcome": report}], cause, there)
    found = parse(one.data["outputs"], answer(render(one, values)))
    return found["rule"], found["component"]


@pytest.mark.parametrize(
    ("report", "cause", "rule", "component"),
    [
        ("a pipe under the floor burst", "leak", VALVE, "AGENTS"),
        ("the kitchen tap drips", "leak", TAP, "TOOLS"),
        ("a lamp gave a shock", "short_circuit", PLUG, "TOOLS"),
    ],
)
def test_the_rule_of_the_nearest_demo_with_the_same_cause_is_given(
    report: str, cause: str, rule: str, component: str
) -> None:
    found, place = proposed(report, cause)
    assert found.startswith(rule.rstrip("."))
    assert place == component


def test_the_cause_decides_before_the_words_do() -> None:
    assert proposed("the lamp gave a shock", "leak")[0].startswith((VALVE.rstrip("."), TAP.rstrip(".")))


def test_a_rule_that_is_there_already_is_not_given_again() -> None:
    assert proposed("the kitchen tap drips", there=(TAP,))[0].startswith(VALVE.rstrip("."))


def test_without_a_near_demo_the_remedy_of_the_cause_is_the_rule() -> None:
    remedy = HOUSE.causes[0].remedy
    assert remedy in proposed("it drips", program=published("rule"))[0]
    assert proposed("it is cold", "cold_room", program=published("rule"))[0].startswith("When a step of this kind")


def test_the_remedy_is_added_to_a_rule() -> None:
    assert proposed("the kitchen tap drips")[0].endswith(
        "close the main valve before any work on a pipe; check it for drips twice."
    )


@pytest.mark.parametrize("length", [MAX_RULE_CHARS - 60, MAX_RULE_CHARS - 1, MAX_RULE_CHARS])
def test_a_rule_with_its_remedy_keeps_to_the_limit(length: int) -> None:
    rule = ("check " * 60)[: length - 1].rstrip() + "."
    assert len(proposed("drips", program=published("rule", demos=[demo("drips", "leak", rule)]))[0]) <= MAX_RULE_CHARS


@pytest.mark.parametrize("length", [10, 500, 2000])
def test_a_remedy_alone_keeps_to_the_limit(length: int) -> None:
    """A user's taxonomy may say more than fits; a longer rule is refused by the runtime, every time."""
    long = HOUSE.causes[0].model_copy(update={"remedy": ("close the valve; " * 200)[:length].strip("; ")})
    program = published("rule", Taxonomy(name="long", causes=(long, *HOUSE.causes[1:])))
    assert len(proposed("drips", program=program)[0]) <= MAX_RULE_CHARS


@pytest.mark.parametrize("name", ["tool:timeout", "late: never", "a/b", "step 1.2"])
def test_causes_are_told_apart_whatever_they_are_called(name: str) -> None:
    """Any name that a taxonomy may give to a label."""
    causes = (RootCause(name=name, definition="One.", remedy="wait once"), *HOUSE.causes[1:])
    demos = [demo("the pump stopped", name, VALVE), demo("the lamp gave a shock", "short_circuit", PLUG)]
    program = published("rule", Taxonomy(name="odd", causes=causes), demos=demos)
    rule, _ = proposed("the lamp gave a shock", name, program=program)
    assert rule.startswith(VALVE.rstrip("."))
    assert "wait once" in rule


def test_a_rule_book_teaches_as_demos_do() -> None:
    rows = [(one["root_cause"], one["component"], one["rule"], features_of(one)) for one in DEMOS]
    plain = published("rule")
    program = published("rule", instructions=f"{plain.data['instructions']}\n\n{write_book(collect(rows))}")
    assert proposed("a pipe under the floor burst", program=program)[0].startswith(VALVE.rstrip("."))
    assert proposed("the garden tap drips", program=program)[0].startswith(TAP.rstrip("."))


@given(entries)
def test_a_book_is_read_back_as_it_was_written(book: list[Entry]) -> None:
    assert read_book(write_book(book)) == book


@given(entries)
def test_a_book_is_taken_out_whole(book: list[Entry]) -> None:
    assert without_books(f"Before.\n{write_book(book)}\nAfter.") == "Before.\nAfter."


@given(any_text)
def test_no_text_is_too_odd_for_a_book(text: str) -> None:
    assert read_book(without_books(text)) == []


def test_entries_are_marked_by_words_that_other_entries_have_too() -> None:
    """A word seen once is nothing to know an example by, unless there are hardly any examples."""
    book = collect([("k", "p", f"rule {word}", features_of({"f": f"the {word} {word}"})) for word in "xyxxzzxx"])
    assert "x" in book[0].words
    assert "y" not in book[1].words
    assert book[4].words[0] == "z"  # rarer than x


def test_a_rule_of_several_lines_becomes_one() -> None:
    (entry,) = collect([("k", "p", "one\n  two", Counter(words_of("a")))])
    assert entry.rule == "one two"
