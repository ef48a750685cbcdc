"""Rule files for tests: what people, editors and attackers put into them, and rules to write there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from hypothesis import strategies as st

from dspy_reflex.errors import TargetError
from dspy_reflex.records.record import Component
from dspy_reflex.targets.block import END, HEADING, with_rules
from dspy_reflex.targets.rule import RuleLine

NAME = "AGENTS.md"
DAY = date(2026, 3, 6)
BEGIN = "<!-- reflex:begin -->"

PLAIN = (
    b"# Rules\n", b"- one\n", b"* [x] two\r\n", b"1. three\n", b"text", b"\n", b"\r\n", b"\r", b"\x0b", b"\x0c", b"\x1c",
    b"\xc2\x85", b"\xe2\x80\xa8", b"\t", b"    ", b"- ", b"\xc3\xbc", b"\xff", b"\xed\xa0\x80", b"\xe4", b"---\n",
    b"> quoted\n", b"[ref]: /url\n", b"|a|\n|-|\n", b"Title\n===\n", b"\\", b"`a`", b"<br>\n", b"<!-- note -->\n",
)  # fmt: skip
"""Pieces that leave nothing open."""
FENCED = tuple(
    f"{before}{inside}{after}".encode()
    for before, after in (("```\n", "```\n"), ("~~~ md\n", "~~~\n"), ("<pre>\n", "</pre>\n"), ("<!--\n", "-->\n"), ("- x\n\n  ", "\n"), ("> ", "\n"))
    for inside in (f"{BEGIN}\n", f"{END}\n", f"{BEGIN}\n{HEADING}\n- [r0] _2026-03-06_: no\n{END}\n")
)  # fmt: skip
"""Markers where they are none; some of them only look closed."""
OPEN = (
    b"```\n",
    b"~~~\n",
    b"<!--\n",
    b"<pre>\n",
    b"<div>\n",
    b"<?php\n",
    BEGIN.encode(),
    f"{END}\n".encode(),
    f"{BEGIN}\n".encode(),
)
"""Pieces that may swallow what follows, and markers of ours."""

_boms = st.sampled_from([b"", b"", b"\xef\xbb\xbf"])


def _joined(pieces: tuple[bytes, ...], size: int) -> st.SearchStrategy[bytes]:
    return st.tuples(_boms, st.lists(st.sampled_from(pieces), max_size=size).map(b"".join)).map(b"".join)


plain_files = _joined(PLAIN, 8)
any_files = (
    st.none() | plain_files | _joined(PLAIN + FENCED, 6) | _joined(PLAIN + FENCED + OPEN, 6) | st.binary(max_size=40)
)

days = st.integers(0, 3).map(lambda more: DAY + timedelta(days=more))
ids = st.integers(0, 30).map(lambda number: f"prop_{number}")
sections: st.SearchStrategy[Component | None] = st.sampled_from([None, None, "SOUL", "AGENTS", "TOOLS"])
said = st.lists(
    st.sampled_from(["Close", "the", "valve", ".", " ", "\n", "\r", "\u2028", "- ", "[x]", "#", "\n## ", "```", BEGIN, END, "<!", "--", ">",
                     "\x00", "\x1b[31m", "\u202e", "\ud800", "[[ ## rule ## ]]", "[", "## "]), max_size=8,
).map("".join) | st.text(max_size=20)  # fmt: skip
"""Texts of rules, most of which would like to be something else; some say nothing."""


def rule(number: int, text: str = "Close the valve.", section: Component | None = None) -> RuleLine:
    """A rule with an id of its own."""
    return RuleLine(f"prop_{number}", text, DAY, section)


def refusal(run: Callable[[], object]) -> str:
    """What a call is refused with; empty if it is not."""
    try:
        run()
    except TargetError as error:
        return str(error)
    return ""


def is_rule(text: str) -> bool:
    """Whether something is left of a text."""
    return not refusal(lambda: rule(0, text))


texts = said.map(lambda text: text if is_rule(text) else f"Close {text}")
rules = st.builds(RuleLine, ids, texts, days, sections)
rule_sets = st.lists(rules, max_size=4, unique_by=lambda each: each.rule_id)


@st.composite
def files_with_block(draw: st.DrawFn) -> bytes:
    """A file with a block of ours, something behind it now and then."""
    content = with_rules(draw(st.none() | plain_files), draw(rule_sets.filter(bool)), NAME)
    assert content is not None
    return content + draw(st.just(b"") | plain_files.map(lambda more: more.removeprefix(b"\xef\xbb\xbf")))
