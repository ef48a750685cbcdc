"""What a Markdown parser says about a rule file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.markdown import comments, decode, encode, last_start, lines, rules_in
from tests.targets.rule_files import BEGIN, NAME, any_files, refusal


@given(any_files)
def test_bytes_come_back_from_text(content: bytes | None) -> None:
    content = content or b""
    if refusal(lambda: decode(content, NAME)):
        assert content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content
    else:
        assert encode(decode(content, NAME)) == content


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
def test_wide_characters_are_refused(encoding: str) -> None:
    with pytest.raises(TargetError, match=r"AGENTS\.md .* UTF-8; save it as UTF-8 first"):
        decode("\ufeff- one".encode(encoding), NAME)


@given(
    st.lists(st.sampled_from(["a", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "# b"]), max_size=9).map(
        "".join
    )
)
def test_lines_are_those_of_the_parser(text: str) -> None:
    """It numbers lines; a line counted differently here would be somebody else's."""
    cut = lines(text)
    assert "".join(cut) == text
    tokens = MarkdownIt("commonmark").parse(f"{text}\n{BEGIN}")
    (last,) = [token.map for token in tokens if token.type == "html_block"]
    assert last is not None
    assert last[0] == len(lines(f"{text}\n"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<!-- a -->\n", [0]),
        ("\ufeff<!-- a -->\n", [0]),
        ("text\n<!-- a -->\nmore\n", [1]),
        ("- item\n<!-- a -->\n", [1]),
        ("> quote\n<!-- a -->\n", [1]),
        ("a\r<!-- a -->\r\n\r\n  <!-- a -->", [1, 3]),
        ("```\n<!-- a -->\n```\n", []),
        ("~~~\n<!-- a -->\n", []),
        ("````\n```\n<!-- a -->\n```\n````\n<!-- a -->\n", [5]),
        ("    <!-- a -->\n", []),
        ("> <!-- a -->\n", []),
        ("- x\n\n  <!-- a -->\n", []),
        ("<div>\n<!-- a -->\n</div>\n", []),
        ("<pre>\n\n<!-- a -->\n</pre>\n", []),
        ("<!--\n<!-- a -->\n", []),
        ("a <!-- a -->\n", []),
        ("`<!-- a -->`\n", []),
    ],
)
def test_a_comment_counts_at_the_top_level_on_a_line_of_its_own(text: str, found: list[int]) -> None:
    assert comments(text) == [(line, "<!-- a -->") for line in found]


def test_the_last_thing_starts_where_it_starts() -> None:
    assert last_start("# a\n\n```\nb\n\n- c\n") == 2
    assert last_start("") == 0


def test_rules_are_list_items_ours_and_others() -> None:
    text = (
        "# Rules\n\n- Be brief.\n* Be kind.\n  + Nested.\n- [ ] To do.\n- [prop_1] _2026-03-06_: Ours.\n- Long\n  ones.\n"
        "\n--- \ntext - no\n\n1. numbered\n\n-   spaced  \n-\n- - deep\n"
    )
    assert rules_in(text) == [
        "Be brief.", "Be kind.", "Nested.", "To do.", "Ours.", "Long ones.", "numbered", "spaced", "deep",
    ]  # fmt: skip
    assert rules_in("- one\r\n- two\r\n") == ["one", "two"]
    assert rules_in("") == []


def test_a_list_in_a_code_fence_is_no_rule() -> None:
    assert rules_in("- one\n\n```\n- two\n```\n\n    - three\n\n<pre>\n- four\n</pre>\n") == ["one"]
