"""Quotes stand in the case, word for word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.lm.offline.features import features_of
from dspy_reflex.runtime.lm.offline.quotes import MAX_QUOTES, QUOTE_CHARS, quotes
from tests.runtime.programs import any_text

CASE = {
    "task": "Book the flight",
    "actual_outcome": "Nothing was booked.\nHTTP 503 Service Unavailable",
    "context": "step 1 ok\nstep 2: 503 again\nstep 3 gave up",
}


@given(st.dictionaries(st.sampled_from(["task", "actual_outcome", "context"]), any_text), st.data())
def test_every_quote_stands_on_a_line_of_the_case(case: dict[str, str], data: st.DataObject) -> None:
    """Also of texts whose lower case is longer than they are."""
    cues = data.draw(st.lists(st.sampled_from([*features_of(case), "not there", "field:word"]), max_size=6))
    found = quotes(case, cues)
    assert len(found) <= MAX_QUOTES
    assert all(quote in text or quote == "" for quote in found for text in ["\0".join(case.values())])
    assert all(len(quote) <= QUOTE_CHARS and "\n" not in quote for quote in found)


@pytest.mark.parametrize(
    ("cues", "found"),
    [
        (["503"], ["step 2: 503 again"]),
        (["actual_outcome:503", "flight"], ["step 2: 503 again", "Book the flight"]),
        (["503", "again"], ["step 2: 503 again", "step 2: 503 again"][:1]),
        (["service unavailable"], ["HTTP 503 Service Unavailable"]),
        (["<a service was overloaded or down>"], ["step 2: 503 again"]),
        (["<actual_outcome ends on a service was overloaded or down>"], ["step 2: 503 again"]),
        (["<a line is repeated>"], []),
        (["absent"], []),
        ([], []),
    ],
)
def test_the_line_that_shows_a_cue_is_quoted(cues: list[str], found: list[str]) -> None:
    assert quotes(CASE, cues) == found


def test_the_same_line_is_quoted_once() -> None:
    assert quotes({"context": "one 503 two"}, ["one", "two", "503"]) == ["one 503 two"]


def test_of_a_long_line_the_part_with_the_cue_is_quoted() -> None:
    (quote,) = quotes({"context": "x " * 1000 + "timeout" + " y" * 1000}, ["timeout"])
    assert "timeout" in quote
    assert len(quote) <= QUOTE_CHARS


@pytest.mark.parametrize("text", ["\u0130stanbul\n" * 8 + "it was a timeout", "\u0130" * 90 + " timeout"])
def test_text_that_grows_in_lower_case_is_quoted_at_the_right_place(text: str) -> None:
    (quote,) = quotes({"context": text}, ["timeout"])
    assert "timeout" in quote
    assert quote in text


def test_half_a_word_is_no_quote() -> None:
    assert quotes({"context": "timeouts everywhere"}, ["timeout"]) == []
    assert quotes({"context": "untimeout\na timeout"}, ["timeout"]) == ["a timeout"]
