"""From paths to rows, with the bad ones left out when that is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.collect import collect
from tests.evalset.rows import COLOURS, raw, write

GOOD = [raw(1), raw(2, root_cause="green"), raw(3, root_cause="blue")]


def test_bad_lines_are_skipped_said_and_counted_only_when_told_to(tmp_path: Path) -> None:
    """Two problems in one line are one line; a second id goes, the first stays."""
    twice = raw(5, root_cause="purple", component="NOWHERE")
    path = write(tmp_path / "rows.jsonl", *GOOD, twice, raw(1, task="another"))
    with pytest.raises(DatasetError, match="3 problems"):
        collect([path], COLOURS, lambda _: None)
    said: list[str] = []
    found = collect([path], COLOURS, said.append, skip_bad=True)
    assert [row.failure.task for row in found.sets[0].split("all")] == ["task 1", "task 2", "task 3"]
    assert said == [f"warning: {line}" for line in found.warnings]
    assert [line for line in said if "skipped" in line][-1] == "warning: 2 lines were skipped"
    assert f"{path}:4" in said[0]


def test_a_set_of_which_nothing_is_left_is_an_error(tmp_path: Path) -> None:
    """There is nothing to go on with."""
    path = write(tmp_path / "rows.jsonl", raw(1, root_cause="purple"))
    with pytest.raises(DatasetError, match="no row can be used"):
        collect([path], COLOURS, lambda _: None, skip_bad=True)


def test_names_are_joined_and_odd_things_are_said(tmp_path: Path) -> None:
    """Each set by itself."""
    one, two = write(tmp_path / "one.jsonl", *GOOD), write(tmp_path / "two.jsonl", raw(9))
    said: list[str] = []
    assert collect([one, two], COLOURS, said.append).name == "one+two"
    assert said == [
        "warning: two: no row is green, blue; the label set stays whole, so a program may answer it",
    ]
