"""The rows that a program was made with are found by what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspy_reflex.benchmark.trainset import compiled_on, count_seen, find_trainset
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.records.taxonomy import RootCause, Taxonomy
from tests.benchmark.contest import LABELS, artifact, rows

COLOURS = Taxonomy(name="colours", causes=tuple(RootCause(name=name, definition=name) for name in LABELS))


def write(path: Path, some: list[LabelledFailure]) -> Path:
    """A file of these rows."""
    lines = [json.dumps({**row.failure.model_dump(), "root_cause": row.root_cause}) for row in some]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_first_candidate_with_all_rows_is_taken_and_only_those_rows(tmp_path: Path) -> None:
    """Missing and damaged files are passed over; so is one that lacks a row."""
    some = rows(6)
    (tmp_path / "bad.jsonl").write_text("{", encoding="utf-8")
    part, whole = write(tmp_path / "part.jsonl", some[:2]), write(tmp_path / "whole.jsonl", some)
    program = artifact(train=[row.row_hash for row in some[1:4]], val=["v"])
    candidates = [tmp_path / "none.jsonl", tmp_path / "bad.jsonl", part, whole]
    assert [row.id for row in find_trainset(program, candidates, COLOURS)] == ["f1", "f2", "f3"]
    assert compiled_on(program) == {*(row.row_hash for row in some[1:4]), "v"}


def test_no_candidate_is_said_with_the_option_that_helps(tmp_path: Path) -> None:
    """And where was looked."""
    place = write(tmp_path / "a.jsonl", rows(3))
    with pytest.raises(BenchmarkError, match=r"the 1 rows .* are not in .*a\.jsonl; .*--trainset"):
        find_trainset(artifact(train=["x"]), [place], COLOURS)
    with pytest.raises(BenchmarkError, match=r"trained on no rows; .*--trainset"):
        find_trainset(artifact(), [place], COLOURS)


def test_seen_rows_are_refused_or_counted() -> None:
    """With how many, and the way round."""
    some = rows(4)
    known = frozenset(row.row_hash for row in some[:2])
    with pytest.raises(BenchmarkError, match=r"mine was made with 2 of these 4 rows \(first: f0\); .*--allow-seen"):
        count_seen("mine", known, some, allow_seen=False)
    assert count_seen("mine", known, some, allow_seen=True) == 2
    assert count_seen("mine", known, some[2:], allow_seen=False) == 0
