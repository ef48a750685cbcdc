"""A diff is what a person reads and what `patch` takes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.targets.block import with_rules
from dspy_reflex.targets.diff import diff, three_way
from tests.targets.rule_files import NAME, plain_files, rule

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
texts = st.lists(
    st.sampled_from(["# Rules\n", "- one\n", "text", "\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u00fc"]), max_size=12
).map("".join)  # fmt: skip


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


@given(texts, texts)
def test_the_diff_of_any_two_texts_applies(before: str, after: str) -> None:
    patch = diff(NAME, before.encode(), after.encode())
    assert (patch == "") == (before == after)
    assert not patch or applied(before, patch) == after


@given(plain_files)
def test_the_diff_can_be_shown_whatever_the_bytes_are(content: bytes) -> None:
    patch = diff(NAME, content, with_rules(content, [rule(1)], NAME))
    patch.encode()
    assert "+- [prop_1] _2026-03-06_: Close the valve." in patch


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the patch command")
@pytest.mark.parametrize(
    "text",
    ["", "a", "a\n", "a\n\n", "a\r\nb\r\n", "a\r\nb", "- one\n- two\x0c\n", "a\u2028b\n", "x\ry\n", "\u00fc\n" * 9],
)
def test_the_patch_command_takes_it(tmp_path: Path, text: str) -> None:
    after = with_rules(text.encode(), [rule(1), rule(2)], NAME)
    path = tmp_path / NAME
    path.write_bytes(text.encode())
    patch = diff(NAME, text.encode(), after).encode()
    done = subprocess.run(["patch", "--binary", "-p1"], cwd=tmp_path, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert path.read_bytes() == after


def test_a_diff_names_the_file_and_shows_the_rule() -> None:
    patch = diff(NAME, b"- one\n", with_rules(b"- one\n", [rule(1, "two")], NAME))
    assert patch.startswith("--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1,6 @@\n - one\n")
    assert "+- [prop_1] _2026-03-06_: two\n" in patch


def test_a_missing_last_newline_is_said_to_be_missing() -> None:
    assert "-one\n\\ No newline at end of file\n+one\n" in diff(NAME, b"one", with_rules(b"one", [rule(1)], NAME))


def test_no_file_shows_as_an_empty_one() -> None:
    assert diff(NAME, None, b"") == ""
    assert diff(NAME, None, b"a\n") == diff(NAME, b"", b"a\n")


def test_three_versions_are_two_diffs_from_one_base() -> None:
    shown = three_way(NAME, "a\nb\n", "a\nB\n", "a\nb\nc\n")
    theirs, ours = shown.split("--- AGENTS.md as last written\n")[1:]
    assert theirs == "+++ AGENTS.md as changed by hand\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
    assert ours == "+++ AGENTS.md as it would be written\n@@ -1,2 +1,3 @@\n a\n b\n+c\n"
    assert three_way(NAME, "a", "a", "a") == ""
