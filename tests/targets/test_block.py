"""One block of ours, and nothing else is ever touched."""

from __future__ import annotations

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.block import END, HEADING, block_of, is_tidy, rules_of, with_rules
from dspy_reflex.targets.rule import RuleLine
from tests.targets.rule_files import BEGIN, NAME, any_files, files_with_block, refusal, rule, rule_sets

ONE, TWO = "- [prop_1] _2026-03-06_: Close the valve.", "- [prop_2] _2026-03-06_: Close the valve."


@given(any_files | files_with_block(), rule_sets, rule_sets)
@example(None, [rule(1)], [])
@example(b"\xef\xbb\xbf", [rule(1)], [])
@example(b"a\r", [rule(1)], [])
@example(b"<!--\n", [rule(1)], [])
def test_a_file_is_a_function_of_its_rules(
    content: bytes | None, first: list[RuleLine], second: list[RuleLine]
) -> None:
    """Whatever was in the block before; and a file that can hold no block is refused by name and line, or as no text."""
    if said := refusal(lambda: with_rules(content, [*rules_of(content, NAME), rule(99)], NAME)):
        event("refused")
        assert said.startswith((f"{NAME}, line ", f"{NAME} holds NUL", f"{NAME} is UTF-"))
        return
    own, tidy = rules_of(content, NAME), is_tidy(content, NAME)
    once = with_rules(content, first, NAME)
    assert set(rules_of(once, NAME)) == set(first)
    assert is_tidy(once, NAME)
    assert with_rules(once, second, NAME) == with_rules(content, second, NAME)
    if tidy:
        assert with_rules(once, own, NAME) == content


@given(any_files, rule_sets.filter(bool))
def test_what_stands_outside_stays_byte_for_byte(content: bytes | None, some: list[RuleLine]) -> None:
    if refusal(lambda: with_rules(content, some, NAME)):
        return
    fresh, after = not block_of(content, NAME), with_rules(content, some, NAME)
    assert after is not None
    if fresh:
        assert after.startswith(content or b"")
        behind = b"\nMore of mine.\r\n\xff"
        again = with_rules(after + behind, [*some, rule(99)], NAME)
        assert again is not None
        assert again.startswith(content or b"")
        assert again.endswith(behind)


@given(st.permutations([rule(1), rule(2), rule(3, section="TOOLS"), rule(4, section="SOUL")]))
def test_rules_have_one_order(some: list[RuleLine]) -> None:
    assert (
        with_rules(None, some, NAME)
        == (
            f"<!-- reflex:begin new -->\n{HEADING}\n{ONE}\n{TWO}\n### SOUL\n- [prop_4] _2026-03-06_: Close the valve.\n"
            f"### TOOLS\n- [prop_3] _2026-03-06_: Close the valve.\n{END}\n"
        ).encode()
    )


@pytest.mark.parametrize(
    ("before", "gap", "mark"),
    [
        ("", "", ""),
        ("\ufeff", "", ""),
        ("a", "\n\n", " +2"),
        ("a\n", "\n", " +1"),
        ("a\n\n", "", ""),
        ("a\r\nb", "\r\n\r\n", " +2"),
        ("a\r\n", "\r\n", " +1"),
        ("a\r\n\r\n", "", ""),
        ("a\nb\r\n", "\r\n", " +1"),
        ("a\r\nb\n", "\n", " +1"),
        ("a\r", "\n\n", " +2"),
    ],
)
def test_the_block_stands_apart_with_the_line_ends_of_the_file(before: str, gap: str, mark: str) -> None:
    """An editor that sees mixed ends rewrites the whole file, which would look like a change by hand."""
    end = gap[: len(gap) // (1 + ("2" in mark))] or ("\r\n" if before.endswith("\r\n") else "\n")
    block = end.join([f"<!-- reflex:begin{mark} -->", HEADING, ONE, END, ""])
    assert with_rules(before.encode(), [rule(1)], NAME) == f"{before}{gap}{block}".encode()


def test_a_block_whose_line_ends_an_editor_changed_is_still_ours() -> None:
    once = with_rules(b"Mine.\n", [rule(1)], NAME)
    assert once is not None
    other = once.replace(b"\n", b"\r\n")
    assert is_tidy(other, NAME)
    assert block_of(other, NAME) == block_of(once, NAME)
    assert with_rules(other, [rule(1), rule(2)], NAME) == other.replace(ONE.encode(), f"{ONE}\r\n{TWO}".encode())
    assert with_rules(other, [], NAME) == b"Mine.\r\n"


def test_a_block_that_somebody_wrote_behind_keeps_its_place() -> None:
    """So that a rule that comes back comes back to where it was."""
    once = with_rules(b"Mine.", [rule(1)], NAME)
    assert once is not None
    gone = with_rules(once + b"More.", [], NAME)
    assert gone == f"Mine.\n\n<!-- reflex:begin +2 -->\n{END}\nMore.".encode()
    assert with_rules(gone, [rule(1)], NAME) == once + b"More."
    assert is_tidy(gone, NAME)


def test_a_file_that_was_made_for_the_block_goes_with_it_unless_somebody_wrote_to_it() -> None:
    made = with_rules(None, [rule(1)], NAME)
    assert made is not None
    assert with_rules(made, [], NAME) is None
    assert with_rules(b"Mine.\n" + made, [], NAME) == f"Mine.\n<!-- reflex:begin new -->\n{END}\n".encode()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"a\n{END}\n", 2, "no block ends here"),
        (f"{BEGIN}\n{ONE}\n", 1, "does not end"),
        (f"{END}\n{BEGIN}\n", 1, "no block ends here"),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", 2, "a second block begins"),
        (f"{BEGIN}\n{END}\n\n{BEGIN}\n{END}\n", 4, "a second block begins"),
        (f"{BEGIN}\n{END}\n{END}\n", 3, "no block ends here"),
        (f"{BEGIN}\n```\n{END}\n", 1, "does not end"),
        (f"\ufeff{BEGIN}\n> {END}\n", 1, "does not end"),
        (f"\ufeff{BEGIN}\n{ONE}\nMine.\n{END}\n", 3, "only rules stand in this block"),
        (f"x\r{BEGIN}\r\n- Mine.\r\n{END}\r\n", 3, "only rules stand in this block"),
        (f"{BEGIN}\n- [prop_1] _2026-13-06_: x\n{END}\n", 2, "only rules stand in this block"),
        (f"{BEGIN}\n### MINE\n{END}\n", 2, "only rules stand in this block"),
        (f"{BEGIN}\n{ONE}\n{ONE}\n{END}\n", 3, "rule prop_1 stands there twice"),
    ],
)
def test_a_block_that_is_none_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(TargetError, match=rf"^AGENTS\.md, line {line}: .*{said}"):
        rules_of(text.encode(), NAME)


@pytest.mark.parametrize(
    "start", ["```\n", "~~~\ncode\n", "<!-- note\n", "<pre>\n", "<script>\n\n", "<?php\n", "````\n```\n"]
)
def test_what_is_never_closed_is_named(start: str) -> None:
    """Rules behind it would be code, or nothing."""
    with pytest.raises(TargetError, match=r"^AGENTS\.md, line 3: what begins here, .* is never closed"):
        with_rules(f"# Mine\n\n{start}".encode(), [rule(1)], NAME)


@pytest.mark.parametrize("start", ["<div>\n", "- item", "> quote", "    code", "| a |\n|--|", "[ref]: /url 'title"])
def test_what_a_blank_line_closes_is_in_nobodys_way(start: str) -> None:
    after = with_rules(start.encode(), [rule(1)], NAME)
    assert rules_of(after, NAME) == (rule(1),)
    assert with_rules(after, [], NAME) == start.encode()


def test_markers_that_are_quoted_are_none() -> None:
    text = f"Ours:\n\n```md\n{BEGIN}\n{HEADING}\n{ONE}\n{END}\n```\n\n> {BEGIN}\n\nIt ends with `{END}`, or {END}.\n"
    assert rules_of(text.encode(), NAME) == ()
    after = with_rules(text.encode(), [rule(2)], NAME)
    assert after is not None
    assert after.startswith(text.encode())
    assert rules_of(after, NAME) == (rule(2),)


@pytest.mark.parametrize(
    "by_hand",
    [
        f"{BEGIN}\n{HEADING}\n\n{ONE}\n{END}\n",
        f"{BEGIN}\n{ONE}\n{END}\n",
        f"{BEGIN}\n{HEADING}\n{TWO}\n{ONE}\n{END}\n",
        f"{BEGIN}\n{HEADING}\n{ONE} \n{END}\n",
        f"{BEGIN}\n{HEADING}\n{ONE}\r\n{END}\n",
        f" {BEGIN}\n{HEADING}\n{ONE}\n{END}\n",
        f"{BEGIN}\n{HEADING}\n- [prop_1] _2026-03-06_: a  b\n{END}\n",
        f"{BEGIN}\n{HEADING}\n{END}\n",
        f"{BEGIN}\n{END}\n",
    ],
)
def test_another_hand_shows(by_hand: str) -> None:
    content = by_hand.encode()
    assert not is_tidy(content, NAME)
    assert is_tidy(with_rules(content, rules_of(content, NAME), NAME), NAME)
