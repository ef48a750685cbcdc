"""Leaving a source out."""

from pathlib import Path

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.leave_out import leave_out
from dspy_reflex.evalset.load import load_evalset
from tests.evalset.rows import COLOURS, raw, write


def test_leaving_a_source_out_takes_every_row_of_its_groups_along_in_all_sets(tmp_path: Path) -> None:
    """The same question in another source would give the answer away."""
    write(
        tmp_path / "a" / "train.jsonl", raw(1, source="a", group="g"), raw(2, source="b", group="g"), raw(3, source="b")
    )
    write(tmp_path / "a" / "test.jsonl", raw(4, source="a"))
    write(tmp_path / "c.jsonl", raw(5, group="g"), raw(6))
    sets = [load_evalset(tmp_path / name, COLOURS) for name in ("a", "c.jsonl")]
    kept = leave_out(sets, [("source", "a")])
    found = [{name: [row.id for row in rows] for name, rows in one.splits.items()} for one in kept]
    assert found == [{"train": ["f3"]}, {"all": ["f6"]}]


def test_an_unknown_source_lists_the_sources_and_nothing_left_is_said(tmp_path: Path) -> None:
    """Leaving out what is not there would be a silent mistake."""
    path = write(tmp_path / "a.jsonl", raw(1, source="a"), raw(2, source="b", group="g"), raw(3, source="a", group="g"))
    only = load_evalset(write(tmp_path / "b.jsonl", raw(1, source="a")), COLOURS)
    both = load_evalset(path, COLOURS)
    with pytest.raises(DatasetError, match="no row has source=c; there is a, b"):
        leave_out([both], [("source", "c")])
    with pytest.raises(DatasetError, match="the rows have no domain"):
        leave_out([both], [("domain", "c")])
    with pytest.raises(DatasetError, match="no row is left without source=a; leave out less"):
        leave_out([only], [("source", "a")])
