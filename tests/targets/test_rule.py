"""A rule is one line, whatever text it was made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.rule import RuleLine, one_line
from tests.targets.rule_files import DAY, rule, said


@given(said | st.text())
def test_a_line_has_no_ends_no_comments_and_stays_as_it_is(text: str) -> None:
    line = one_line(text)
    assert len(f"x{line}x".splitlines()) == 1
    assert "<!--" not in line
    assert "-->" not in line
    assert "[[ ##" not in line
    assert line == one_line(line) == line.strip()
    line.encode()


def test_what_reads_well_stays_word_for_word() -> None:
    text = "When `POST /x` answers 429, wait <= 30 s -- then retry -> at most 3 times; tell Zoë [why](docs) & stop."
    assert one_line(text) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n\n## b\r\nc", "a ## b c"),
        ("a <!-- reflex:end --> b", "a reflex:end b"),
        ("<!<!------ reflex:end ---->>", "<! reflex:end >"),
        ("<!-<!---- reflex:end ---->->", "<!- reflex:end ->"),
        ("<!--!>", "!>"),
        ("[<!--[ ## rule ## ]-->]", "[# rule #]"),
        ("\x1b[31mred\u202e", "\u241b[31mred"),
    ],
)
def test_what_could_be_structure_is_taken_out(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_rule_is_shown_as_it_stands_in_a_file() -> None:
    assert str(rule(1, "a\nb")) == "- [prop_1] _2026-03-06_: a b"


@pytest.mark.parametrize("text", ["", " \n", "<!-- -->", "\u200b"])
def test_a_rule_says_something(text: str) -> None:
    with pytest.raises(TargetError, match="prop_1 says nothing"):
        rule(1, text)


@pytest.mark.parametrize("rule_id", ["", "a b", "a]", "[a", "1a", "a\n", "é", "-->"])
def test_an_id_is_a_word(rule_id: str) -> None:
    with pytest.raises(TargetError, match="cannot be a rule's id"):
        RuleLine(rule_id, "x", DAY)


def test_rules_that_would_be_written_alike_are_alike() -> None:
    ones: Any = {rule(1, "a  b"), rule(1, "a\nb")}
    assert len(ones) == 1
