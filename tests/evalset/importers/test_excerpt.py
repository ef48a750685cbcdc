"""A run as a bounded text."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.evalset.importers.excerpt import EXCERPT_CHARS, STEPS_SHOWN, Step, around, share

texts = st.lists(st.text(max_size=300), max_size=8)


@given(texts, st.integers(0, 1_500))
def test_shared_texts_keep_to_the_budget_and_short_ones_stay_whole(parts: list[str], budget: int) -> None:
    found = share(parts, budget)
    assert len(found) == len(parts)
    assert sum(map(len, found)) <= max(budget, 0)
    if sum(map(len, parts)) <= budget:
        assert found == parts


def test_what_short_texts_leave_over_goes_to_the_long_ones() -> None:
    found = share(["a" * 10, "b" * 5_000, "c" * 5_000], 2_010)
    assert [len(text) for text in found] == [10, 1_000, 1_000]
    assert "characters left out" in found[1]


def steps(count: int, size: int = 20) -> list[Step]:
    """A run whose steps say their number."""
    return [Step("agent", f"{number} " + "x" * size) for number in range(count)]


@given(st.integers(1, 60), st.data(), st.integers(0, 3_000))
def test_an_excerpt_is_bounded_and_has_the_marked_step(count: int, data: st.DataObject, size: int) -> None:
    marked = data.draw(st.integers(0, count - 1))
    text = around(steps(count, size), marked, "key")
    assert len(text) <= EXCERPT_CHARS
    assert f"[step {marked}] agent: " in text
    assert text.count("] agent: ") == min(count, STEPS_SHOWN)


def test_a_short_run_is_shown_whole_and_alike_wherever_the_mark_is() -> None:
    run = steps(STEPS_SHOWN, 2_000)
    assert len({around(run, marked, f"key {marked}") for marked in range(STEPS_SHOWN)}) == 1


def test_the_place_of_the_marked_step_in_a_long_run_says_nothing() -> None:
    """Were it in the middle always, a reader could count."""
    run = steps(60)
    places: Counter[int] = Counter()
    for number in range(600):
        shown = [int(found) for found in re.findall(r"\[step (\d+)\]", around(run, 30, f"run {number}"))]
        places[shown.index(30)] += 1
    assert set(places) == set(range(STEPS_SHOWN))
    assert max(places.values()) < 100


def test_what_is_left_out_is_said_and_the_same_key_leaves_out_the_same() -> None:
    text = around(steps(40), 20, "key")
    assert text == around(steps(40), 20, "key")
    (before,) = re.findall(r"^…\[(\d+) earlier steps left out\]…$", text, re.MULTILINE)
    (after,) = re.findall(r"^…\[(\d+) later steps left out\]…$", text, re.MULTILINE)
    assert int(before) + int(after) + STEPS_SHOWN == 40
