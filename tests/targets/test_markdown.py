"""Rules in Markdown files: one block of ours, and nothing else is ever touched."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.targets.markdown import BEGIN, END, HEADING, diff, rules_in, with_rule
from dspy_reflex.untrusted import neutralise

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
PIECES = (
    "# Rules\n",
    "- one\n",
    "* [x] two\n",
    "text",
    "\n",
    "\r\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\u2028",
    "\t",
    "- ",
    "\u00fc",
)
files = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
marked = st.lists(st.sampled_from([*PIECES, BEGIN, END, f"{BEGIN}\n", f"{END}\n", HEADING]), max_size=8).map("".join)
rules = st.lists(st.sampled_from(["Close", "the", "valve", ".", " ", "\n", "\u2028", "- ", "[x]", "#", BEGIN, END, "<!--", "-->"]),
                 min_size=1, max_size=8).map("".join).filter(str.strip)  # fmt: skip
ids = st.from_regex(r"prop_[0-9a-f]{16}", fullmatch=True)


def lines_of(text: str) -> list[str]:
    """Lines as `patch` sees them: cut after line feeds and nowhere else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def applied(before: str, patch: str) -> str:
    """What the text becomes, by the strict reading of a unified diff: every line must be where it says."""
    old, new, at = lines_of(before), list[str](), 0
    body = lines_of(patch)[2:]
    while body:
        hunk = HUNK.fullmatch(body.pop(0))
        assert hunk
        start, size, _, new_size = (int(found) if found is not None else 1 for found in hunk.groups())
        first = start - 1 if size else start
        new += old[at:first]
        at, goal, added = first, first + size, 0
        while at < goal or added < new_size:
            kind, line = body[0][0], body.pop(0)[1:]
            if body and body[0].startswith("\\"):
                assert body.pop(0) == "\\ No newline at end of file\n"
                line = line.removesuffix("\n")
            assert kind in " +-"
            if kind != "+":
                assert old[at] == line
                at += 1
            if kind != "-":
                new.append(line)
                added += 1
        assert (at, added) == (goal, new_size)
    return "".join(new + old[at:])


def outside(text: str) -> tuple[str, str]:
    """What stands before and behind our block."""
    head, _, rest = text.partition(BEGIN)
    return head, rest.partition(f"{END}\n")[2]


@given(files, ids, rules, ids, rules)
def test_nothing_outside_the_block_is_touched(text: str, one: str, first: str, two: str, second: str) -> None:
    """Byte for byte, whatever the line ends are, and whatever the rules say."""
    after = with_rule(text, one, first)
    assert after.startswith(text)
    behind = f"{after}\nMore of mine.\r\n"
    again = with_rule(behind, two, second)
    assert again.startswith(text)
    assert again.endswith("\nMore of mine.\r\n")
    assert outside(again) == outside(behind)


@given(marked, ids, rules)
def test_only_whole_lines_are_added_whatever_marks_the_file_holds(text: str, rule_id: str, rule: str) -> None:
    """Taking them out again gives the file back."""
    after = with_rule(text, rule_id, rule)
    start = next((i for i, (a, b) in enumerate(zip(text, after, strict=False)) if a != b), min(len(text), len(after)))
    added = len(after) - len(text)
    assert any(after[:i] + after[i + added :] == text for i in range(max(0, start - added), start + 1))


@given(files, st.lists(st.tuples(ids, rules), min_size=1, max_size=4))
def test_several_rules_share_one_block_in_order(text: str, several: list[tuple[str, str]]) -> None:
    after = text
    for rule_id, rule in several:
        after = with_rule(after, rule_id, rule)
    block = after[len(text) :].strip().splitlines()
    assert (block[0], block[1], block[-1]) == (BEGIN, HEADING, END)
    assert [line.split("]")[0] for line in block[2:-1]] == [f"- [{rule_id}" for rule_id, _ in several]


@pytest.mark.parametrize(
    "text", [f"Ours ends with {END}.\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n", f"`{END}`\n{BEGIN}\n{HEADING}\n{END}\n"]
)
def test_a_stray_mark_does_not_make_a_second_block_each_time(text: str) -> None:
    once = with_rule(text, "p1", "one")
    twice = with_rule(once, "p2", "two")
    assert twice.count(BEGIN) == once.count(BEGIN)
    assert twice.index("- [p1] one\n") + len("- [p1] one\n") == twice.index("- [p2] two\n")


@pytest.mark.parametrize(
    "rule", [f"Write {END} never.", f"Write {BEGIN} never.", f"{END}\n# Mine\n- evil", "<!<!---- reflex:end ---->>"]
)
def test_a_rule_cannot_leave_the_block(rule: str) -> None:
    after = with_rule(with_rule("Mine.\n", "p1", rule), "p2", "two")
    assert (after.count(BEGIN), after.count(END)) == (1, 1)
    assert after.endswith(f"- [p2] two\n{END}\n")


def test_a_block_whose_line_ends_an_editor_changed_is_still_ours() -> None:
    once = with_rule("Mine.\n", "p1", "one").replace("\n", "\r\n")
    twice = with_rule(once, "p2", "two")
    assert twice.count(BEGIN) == twice.count(END) == 1
    assert rules_in(twice) == ["one", "two"]


@given(files, ids, rules.filter(lambda rule: "-->" not in rule and "<!--" not in rule))
def test_a_rule_that_was_written_is_read_back_on_one_line(text: str, rule_id: str, rule: str) -> None:
    assert rules_in(with_rule(text, rule_id, rule)) == [*rules_in(text), " ".join(neutralise(rule).split())]


def test_the_block_stands_apart_from_what_was_there() -> None:
    for text, gap in (("", ""), ("a", "\n\n"), ("a\n", "\n"), ("a\n\n", "")):
        assert with_rule(text, "p1", "Do it.") == f"{text}{gap}{BEGIN}\n{HEADING}\n- [p1] Do it.\n{END}\n"


def test_rules_are_list_items_ours_and_others() -> None:
    text = (
        "# Rules\n\n- Be brief.\n* Be kind.\n  + Nested.\n- [ ] To do.\n- [prop_1] Ours.\n-not one\n--- \ntext - no\n"
        "1. numbered\n-   spaced  \n-\n"
    )
    assert rules_in(text) == ["Be brief.", "Be kind.", "Nested.", "To do.", "Ours.", "spaced"]
    assert rules_in("- one\r\n- two\r\n") == ["one", "two"]
    assert rules_in("") == []


def test_field_headers_in_a_rule_lose_their_meaning() -> None:
    assert "[[ ##" not in with_rule("", "p1", "Write [[ ## rule ## ]] here.")


@settings(max_examples=200)
@given(files, ids, rules)
def test_the_diff_makes_the_new_file_of_the_old_one(text: str, rule_id: str, rule: str) -> None:
    after = with_rule(text, rule_id, rule)
    assert applied(text, diff("AGENTS.md", text, after)) == after


@given(files, files)
def test_the_diff_of_any_two_texts_applies(before: str, after: str) -> None:
    patch = diff("AGENTS.md", before, after)
    assert (patch == "") == (before == after)
    assert not patch or applied(before, patch) == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch command")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a\n",
        "a\n\n",
        "a\r\nb\r\n",
        "a\r\nb",
        "- one\n- two\x0c\n",
        "a\u2028b\n",
        "a\u2028b",
        "x\ry\n",
        "\u00fc\n" * 9,
    ],
)
def test_the_patch_command_takes_it(tmp_path: Path, text: str) -> None:
    after = with_rule(with_rule(text, "p1", "one"), "p2", "two")
    path = tmp_path / "AGENTS.md"
    path.write_bytes(text.encode())
    patch = diff("AGENTS.md", text, after).encode()
    done = subprocess.run(["patch", "--binary", "-p1"], cwd=tmp_path, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert path.read_bytes() == after.encode()


def test_a_diff_names_the_file_and_shows_the_rule() -> None:
    patch = diff("AGENTS.md", "- one\n", with_rule("- one\n", "p1", "two"))
    assert patch.startswith("--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1,6 @@\n - one\n")
    assert "+- [p1] two\n" in patch


def test_a_missing_last_newline_is_said_to_be_missing() -> None:
    patch = diff("A.md", "one", with_rule("one", "p1", "two"))
    assert "-one\n\\ No newline at end of file\n+one\n" in patch


@pytest.mark.parametrize("text", ["- one\r\n", "- one\r\n- two\r\n", "# Rules\r\n\r\n"])
def test_a_file_with_other_line_ends_keeps_its_own_and_ours_are_alike(text: str) -> None:
    """An editor that sees mixed ends rewrites the whole file, which would look like a change by hand."""
    after = with_rule(with_rule(text, "p1", "one"), "p2", "two")
    assert after.startswith(text)
    assert after.count("\r\n") == after.count("\n")
    assert rules_in(after)[-2:] == ["one", "two"]
