"""Changes by hand are shown beside ours."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.block import END, rules_of, with_rules
from dspy_reflex.targets.conflict import conflict
from dspy_reflex.targets.edit import Edit, add
from tests.targets.rule_files import NAME, files_with_block, rule

WRITTEN = with_rules(b"# Mine\n", [rule(1), rule(2)], NAME) or b""
BY_HAND = WRITTEN.replace(b"Close", b"Open", 1)


@given(
    files_with_block(),
    st.integers(0, 400),
    st.sampled_from([b"x", b"\xff", b"-", b" ", b"\n- [prop_77] _2026-03-06_: Mine.\n"]),
)
def test_a_change_inside_shows_and_one_outside_does_not(content: bytes, at: int, more: bytes) -> None:
    base = rules_of(content, NAME)
    first, last = content.index(b"<!-- reflex:begin"), content.rindex(END.encode())
    inside = content.index(b"\n", first) + 1
    place = inside + at % (last - inside)
    changed = content[:place] + more + content[place:]
    assume(changed.count(b"\r\n") == content.count(b"\r\n"))
    assert "as changed by hand" in conflict(changed, base, [], NAME)
    for same in (content, content + b"\n\nMore.\n", b"# First\n\n" + content.removeprefix(b"\xef\xbb\xbf")):
        assert conflict(same, base, [], NAME) == ""


def test_line_ends_are_nobodys_change() -> None:
    assert conflict(WRITTEN.replace(b"\n", b"\r\n"), [rule(1), rule(2)], [], NAME) == ""


def test_both_sides_are_shown() -> None:
    shown = conflict(BY_HAND, [rule(1), rule(2)], [add(rule(3))], NAME)
    assert "-- [prop_1] _2026-03-06_: Close the valve.\n+- [prop_1] _2026-03-06_: Open the valve.\n" in shown
    assert "+- [prop_3] _2026-03-06_: Close the valve.\n" in shown
    assert shown.count("--- AGENTS.md as last written\n") == 2
    assert "Mine" not in shown


def test_a_deleted_block_is_shown_as_deleted() -> None:
    shown = conflict(b"# Mine\n", [rule(1), rule(2)], [], NAME)
    assert "-- [prop_1] _2026-03-06_: Close the valve.\n" in shown
    assert "as it would be written" not in shown


def test_edits_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TargetError, match="rule prop_3 is not what it was"):
        conflict(BY_HAND, [rule(1)], [Edit(rule(3), rule(4))], NAME)
