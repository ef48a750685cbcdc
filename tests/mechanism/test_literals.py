"""What a text must contain for a pattern to be found in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.mechanism.literals import folded, has, literals_of
from dspy_reflex.mechanism.symptom import default_table

PATTERNS = [pattern for entry in default_table() for pattern in entry.patterns]


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("time(?:d)? ?out", [{"time"}, {"out"}]),
        (r"\b(?:stale|out of date)\b", [{"stale", "out of date"}]),
        (r"(?:very )?(?:bad|wrong) (?:key|token)s?", [{"bad", "wrong"}, {" "}, {"key", "token"}]),
        (r"a?(?:bc){2}d*", [{"bc"}]),
        ("(?:abc|d*)", []),
        ("(?:a(?:bcd|e)|fg)", [{"a", "fg"}]),
        ("x(?=yyy)", [{"x"}]),
        ("[a-z]+", []),
        ("St\u00dcck", [{"st"}, {"ck"}]),
    ],
)
def test_what_is_needed_is_found(pattern: str, literals: list[set[str]]) -> None:
    assert literals_of(re.compile(pattern, re.IGNORECASE)) == tuple(map(frozenset, literals))


@given(st.sampled_from(PATTERNS).flatmap(lambda pattern: st.tuples(st.just(pattern), st.from_regex(pattern))))
def test_whatever_a_pattern_is_found_in_has_one_of_its_literals(case: tuple[re.Pattern[str], str]) -> None:
    pattern, text = case
    assert pattern.search(text)
    assert has(folded(text), literals_of(pattern))


@pytest.mark.parametrize("text", ["T\u0130MEOUT", "t\u0131meout", "\u017ftale", "to\u212aen expired"])
def test_letters_that_patterns_take_for_others_are_taken_for_them(text: str) -> None:
    found = [pattern for pattern in PATTERNS if pattern.search(text)]
    assert found
    assert all(has(folded(text), literals_of(pattern)) for pattern in found)


def test_nearly_every_pattern_needs_something() -> None:
    assert sum(literals_of(pattern) == () for pattern in PATTERNS) <= 1
