"""What a compile learns from: folders, single files, a handful of rows, several sets at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import CompileError, DatasetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.compile import CompileResult
from tests.optimize.compiles import CORE, labelled, quick, take, ten_rows, write_rows


def parts(result: CompileResult, *files: Path) -> tuple[list[LabelledFailure], list[LabelledFailure]]:
    """The rows of single files that a program learnt from, and those it was chosen on."""
    by_hash = {row.row_hash: row for file in files for row in labelled(file, "all")}
    data = result.artifact.data["data"]
    return [by_hash[name] for name in data["train"]], [by_hash[name] for name in data["val"]]


def rows(stop: int = 9, **fields: Any) -> list[dict[str, Any]]:
    """Six rows of each of `stop` turns; a field may be a function of the row's number."""
    return [
        {**row, **{name: value(number) if callable(value) else value for name, value in fields.items()}}
        for number, row in enumerate(take(0, stop))
    ]


@pytest.mark.parametrize("field", ["family", "group"])
def test_a_single_file_is_split_without_dividing_a_family_or_group(field: str, tmp_path: Path) -> None:
    """Three rows a unit; most of them to learn from, some to choose on."""
    path = write_rows(tmp_path / "mine.jsonl", rows(9, **{field: lambda number: f"u{number // 3}"}))
    train, val = parts(quick(tmp_path, path), path)
    assert len(train) + len(val) == 54
    assert not {row.unit for row in train} & {row.unit for row in val}
    assert 6 <= len(val) <= 18


def test_a_single_file_without_families_is_split_by_row_with_every_class_on_both_sides(tmp_path: Path) -> None:
    """Stratified; a text that stands there twice stays on one side."""
    path = write_rows(tmp_path / "mine.jsonl", [*rows(), *({**row, "id": f"again-{row['id']}"} for row in rows(2))])
    train, val = parts(quick(tmp_path, path), path)
    assert {row.root_cause for row in train} == {row.root_cause for row in val}
    assert not {row.row_hash for row in train} & {row.row_hash for row in val}


@pytest.mark.parametrize("optimizer", CORE)
def test_ten_rows_in_a_taxonomy_of_ones_own_compile(optimizer: str, tmp_path: Path) -> None:
    """Every row is learnt from; the score is cross-validated and has an interval."""
    taxonomy, path = ten_rows(tmp_path)
    result = quick(tmp_path, path, taxonomy=str(taxonomy), optimizer=optimizer, max_demos=4)
    artifact, scores = result.artifact, result.scores
    assert artifact.labels == ("unripe", "rotten", "bruised")
    assert artifact.data["taxonomy"]["name"] == "fruit"
    assert (len(artifact.data["data"]["train"]), artifact.data["data"]["val"]) == (10, [])
    assert (scores["on"], scores["n"]) == ("5-fold cross-validation", 10)
    assert scores["interval"][0] <= scores["value"] <= scores["interval"][1]
    assert {demo["id"] for demo in artifact.data["demos"]} <= {f"t{number}" for number in range(10)}


def test_ten_rows_give_the_same_bytes_again(tmp_path: Path) -> None:
    """Folds are dealt by the seed, not by chance; threads change nothing."""
    taxonomy, path = ten_rows(tmp_path)
    made = [
        quick(tmp_path / name, path, taxonomy=str(taxonomy), optimizer="miprov2", trials=2, threads=threads)
        for name, threads in (("a", 1), ("b", 8))
    ]
    assert made[0].path.read_bytes() == made[1].path.read_bytes()


def test_the_uncompiled_program_beside_a_small_set_says_what_it_was_measured_on(tmp_path: Path) -> None:
    """There is no val split, so no score may be called one of val."""
    taxonomy, path = ten_rows(tmp_path)
    result = quick(tmp_path, path, taxonomy=str(taxonomy), max_demos=4)
    assert result.scores["uncompiled"]["n"] == 10
    assert result.scores["uncompiled"]["on"] != "val"


def test_absent_classes_warn_and_the_label_set_stays_whole(tmp_path: Path) -> None:
    """A program may answer a label that it saw no example of."""
    some = [row for row in rows() if row["root_cause"] not in ("context_loss", "overconfidence")]
    result = quick(tmp_path, write_rows(tmp_path / "some.jsonl", some))
    (warning,) = [line for line in result.warnings if "no row is" in line]
    assert "context_loss" in warning
    assert "overconfidence" in warning
    assert {"context_loss", "overconfidence"} <= set(result.artifact.labels)
    assert len(result.artifact.labels) == 6


def test_two_sets_are_pooled(small: Path, tmp_path: Path) -> None:
    """A folder's splits stay what they are; a small file is learnt from; the artefact names both."""
    more = write_rows(tmp_path / "more.jsonl", [{**row, "family": "another"} for row in take(9, 10)])
    data = quick(tmp_path, [small, more]).artifact.data["data"]
    assert data["name"] == "small+more"
    added = {row.row_hash for row in labelled(more, "all")}
    assert added <= set(data["train"])
    assert set(data["val"]) == {row.row_hash for row in labelled(small, "val")}


@pytest.mark.parametrize("n", [12, 42])
def test_a_group_in_two_pooled_files_stays_on_one_side(n: int, tmp_path: Path) -> None:
    """The same question in two files would give the answer of val away, however many rows the second one has."""
    first = rows(9, group=lambda number: f"g{number}")
    second = [{**row, "id": f"again-{row['id']}", "task": f"{row['task']} Soon."} for row in first[-n:]]
    files = [write_rows(tmp_path / "a.jsonl", first), write_rows(tmp_path / "b.jsonl", second)]
    train, val = parts(quick(tmp_path, files), *files)
    assert val
    assert not {row.group for row in train} & {row.group for row in val}


def test_leaving_a_source_out_takes_its_groups_along(tmp_path: Path) -> None:
    """Rows of another source go when they share a group with one that goes: here the first two of every three."""
    trios = rows(9, source=lambda number: f"s{number % 3}", group=lambda number: f"g{number // 3}-{number % 3 == 2}")
    path = write_rows(tmp_path / "mine.jsonl", trios)
    train, val = parts(quick(tmp_path, path, leave_out=(("source", "s0"),)), path)
    assert sorted(row.id for row in (*train, *val)) == sorted(row["id"] for row in trios if row["source"] == "s2")


def test_leaving_a_source_out_reaches_across_pooled_sets(small: Path, tmp_path: Path) -> None:
    """One set may lack the source altogether; a row of it goes when it shares a group with one that goes."""
    sources = [
        {**row, "id": f"real-{row['id']}", "task": f"{row['task']} Now."}
        for row in rows(2, source=lambda number: f"s{number % 2}", group=lambda number: f"g{number}")
    ]
    real = write_rows(tmp_path / "real.jsonl", sources)
    shares = write_rows(tmp_path / "shares.jsonl", [{**row, "group": f"g{n}"} for n, row in enumerate(take(9, 10)[:2])])
    data = quick(tmp_path, [small, real, shares], leave_out=(("source", "s0"),)).artifact.data["data"]
    kept = {row.row_hash for row in labelled(real, "all") if row.source == "s1"}
    kept |= {row.row_hash for row in labelled(shares, "all") if row.group == "g1"}
    assert set(data["train"]) == kept | {row.row_hash for row in labelled(small, "train")}


def test_rows_of_one_cause_teach_nothing_and_it_is_said(tmp_path: Path) -> None:
    """Before anything is asked."""
    one = [row for row in rows() if row["root_cause"] == "tool_failure"]
    with pytest.raises(CompileError, match="all 9 rows to learn from have the root cause 'tool_failure'"):
        quick(tmp_path, write_rows(tmp_path / "one.jsonl", one))
    assert not (tmp_path / "run").exists()


def test_leaving_out_what_is_not_there_is_an_error(small: Path, tmp_path: Path) -> None:
    """A silent slip would leave the source in."""
    with pytest.raises(DatasetError, match="source=nowhere"):
        quick(tmp_path, small, leave_out=(("source", "nowhere"),))
    assert not (tmp_path / "out").exists()


def test_a_file_of_one_family_cannot_be_split_and_says_so(tmp_path: Path) -> None:
    """With the field to mend."""
    with pytest.raises(DatasetError, match=r"all 54 rows belong to 'same'.*`family` or `group`"):
        quick(tmp_path, write_rows(tmp_path / "mine.jsonl", rows(family="same")))


def test_rows_of_the_splits_unknown_and_controls_are_never_learnt_from(small: Path, tmp_path: Path) -> None:
    """Nobody could say what their cause was, or nothing went wrong."""
    folder = tmp_path / "with-controls"
    for name in ("train", "val"):
        write_rows(folder / f"{name}.jsonl", map(json.loads, (small / f"{name}.jsonl").read_text().splitlines()))
    write_rows(folder / "controls.jsonl", [{"id": "fine", "task": "Add 1 and 1", "actual_outcome": "2, as asked"}])
    data = quick(tmp_path, folder).artifact.data["data"]
    assert len(data["train"]) + len(data["val"]) == 48
