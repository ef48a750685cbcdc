"""Files become rows, and everything that is wrong with one is said at once."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.load import load_evalset, load_failures
from tests.evalset.rows import COLOURS, raw, write


def message(path: Path, **options: Any) -> str:
    """What is said about a file that cannot be used."""
    with pytest.raises(DatasetError) as caught:
        load_evalset(path, COLOURS, **options)
    return str(caught.value)


def test_a_folder_has_one_split_for_each_jsonl_file(tmp_path: Path) -> None:
    """Cards, JSON files and READMEs are no splits."""
    write(tmp_path / "train.jsonl", raw(1), raw(2))
    write(tmp_path / "test.jsonl", raw(3))
    for name in ("README.md", "card.json", ".hidden.jsonl"):
        (tmp_path / name).write_text("not rows", encoding="utf-8")
    evalset = load_evalset(tmp_path, COLOURS)
    assert {name: len(rows) for name, rows in evalset.splits.items()} == {"test": 1, "train": 2}
    assert evalset.name == tmp_path.name


def test_a_single_file_is_one_split_named_all(tmp_path: Path) -> None:
    """So that the caller can decide how to divide it."""
    evalset = load_evalset(write(tmp_path / "mine.jsonl", raw(1), raw(2)), COLOURS)
    assert (evalset.name, list(evalset.splits)) == ("mine", ["all"])
    assert [row.where for row in evalset.rows] == [f"{tmp_path}/mine.jsonl:1", f"{tmp_path}/mine.jsonl:2"]


def test_every_field_finds_its_place(tmp_path: Path) -> None:
    """Label fields on the row, the failure's in the failure, unknown ones kept there and never rendered."""
    fields = {
        "also_acceptable": ["blue"], "component": "TOOLS", "reference_rule": "Before x, do y.", "family": "fam",
        "key_points": [["a", "b"], "c"], "existing_rules": ["r"], "group": 7, "source": "s", "reason": "secret",
        "severity": None, "where": "kept", "context": {"k": [1, None]},
    }  # fmt: skip
    row = load_evalset(write(tmp_path / "a.jsonl", raw(1, **fields)), COLOURS).rows[0]
    assert (row.also_acceptable, row.component, row.reference_rule) == (("blue",), "TOOLS", "Before x, do y.")
    assert (row.key_points, row.existing_rules, row.group) == ((("a", "b"), ("c",)), ("r",), "7")
    assert row.failure.model_extra == {"reason": "secret", "where": "kept"}
    assert row.failure.severity == "medium"
    assert (row.value("source"), row.value("reason"), row.value("severity"), row.value("x")) == (
        "s", "secret", "medium", None,
    )  # fmt: skip
    assert "secret" not in "".join(row.inputs.values())


def test_crlf_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    """Windows writes both."""
    text = json.dumps(raw(1)) + "\r\n\r\n" + json.dumps(raw(2)) + "\r\n"
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(load_evalset(tmp_path / "a.jsonl", COLOURS).rows) == 2


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    """`str.splitlines` would cut here."""
    (tmp_path / "a.jsonl").write_text(json.dumps(raw(1, task="a\u2028b\x85c"), ensure_ascii=False), encoding="utf-8")
    assert load_evalset(tmp_path / "a.jsonl", COLOURS).rows[0].failure.task == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{oops", "a.jsonl:1: not JSON"),
        (b"[1, 2]", "a.jsonl:1: a JSON list where an object is needed"),
        (b'{"task": "\xff"}', "a.jsonl:1: not UTF-8 at byte 11"),
        (b'{"task": NaN}', "a.jsonl:1: NaN is not a JSON number"),
        (b'{"task": 1e999}', "a.jsonl:1: 1e999 is not a JSON number"),
        (b'{"task": "\\ud800"}', "a.jsonl:1: half a character"),
        (b"[" * 200_000, "a.jsonl:1: nested too deeply"),
        (b"", "a.jsonl: the file is empty"),
        (b"\n \n", "a.jsonl: the file is empty"),
    ],
)
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    """With file, line, and what to do."""
    (tmp_path / "a.jsonl").write_bytes(line)
    assert said in message(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"task": None}, "task is blank; write what the agent was asked"),
        ({"task": "  "}, "task is blank"),
        ({"actual_outcome": ""}, "actual_outcome is blank; write what came out"),
        ({"root_cause": None}, "root_cause is blank; write one label"),
        ({"root_cause": "Gren"}, "root_cause 'Gren' is not in the taxonomy; did you mean 'green'? Its labels are red,"),
        ({"root_cause": "xyz"}, "root_cause 'xyz' is not in the taxonomy; Its labels are red, green, blue"),
        ({"also_acceptable": ["red", "bleu"]}, "also_acceptable 'bleu' is not in the taxonomy; did you mean 'blue'?"),
        ({"root_cause": 3}, "root_cause cannot be used"),
        ({"severity": "awful"}, "severity cannot be used (Input should be 'low'"),
        ({"component": "MEMORY"}, "component cannot be used"),
        ({"key_points": [3]}, "key_points.0 cannot be used"),
        ({"id": "x" * 201}, "id cannot be used"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    """With file, line, and what to do."""
    path = write(tmp_path / "a.jsonl", raw(1), {**raw(2), **fields})
    assert message(path).startswith(f"{path}:2: {said}")


def test_missing_fields_are_all_named(tmp_path: Path) -> None:
    """Not only the first."""
    text = message(write(tmp_path / "a.jsonl", {"id": "x"}))
    assert all(f"{name} is missing" in text for name in ("task", "actual_outcome", "root_cause"))


def test_a_duplicate_id_names_both_lines_across_splits(tmp_path: Path) -> None:
    """An id names one row of the whole set."""
    write(tmp_path / "test.jsonl", raw(1))
    write(tmp_path / "train.jsonl", raw(2), raw(1))
    expected = f"{tmp_path}/train.jsonl:2: id 'f1' is already at {tmp_path}/test.jsonl:1"
    assert message(tmp_path).startswith(expected)


def test_all_problems_come_in_one_message_from_the_top_and_are_counted(tmp_path: Path) -> None:
    """The first twenty lines and how many more."""
    lines = [json.dumps(raw(1, root_cause="grey")), *["{"] * 23, json.dumps(raw(1))]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    said = message(tmp_path / "a.jsonl").splitlines()
    assert said[0] == "25 problems, nothing was read:"
    assert [line.split("a.jsonl:")[1].split(":")[0] for line in said[1:-1]] == [str(n) for n in range(1, 21)]
    assert said[-1] == "  ... and 5 more"


def test_rows_without_a_root_cause_live_in_splits_of_their_own(tmp_path: Path) -> None:
    """They are kept there, and are no rows to learn from."""
    write(tmp_path / "train.jsonl", raw(1))
    write(tmp_path / "unknown.jsonl", raw(2, root_cause=None))
    unlabelled = raw(3)
    del unlabelled["root_cause"]
    write(tmp_path / "controls.jsonl", unlabelled)
    evalset = load_evalset(tmp_path, COLOURS)
    assert [row.id for row in evalset.rows] == ["f1"]
    assert [row.id for row in (*evalset.split("unknown"), *evalset.split("controls"))] == ["f2", "f3"]


def test_a_missing_split_or_path_is_named(tmp_path: Path) -> None:
    """With what there is."""
    write(tmp_path / "train.jsonl", raw(1))
    with pytest.raises(DatasetError, match="no split 'test'; it has train"):
        load_evalset(tmp_path, COLOURS).split("test")
    assert "no such file" in message(tmp_path / "nope.jsonl")
    (tmp_path / "empty").mkdir()
    assert "no *.jsonl file in this folder" in message(tmp_path / "empty")


def test_unlabelled_failures_come_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    """Labels in them are kept as unknown fields."""
    path = write(tmp_path / "a.jsonl", {"task": "t", "actual_outcome": "a"}, raw(2))
    assert [failure.task for failure in load_failures(path)] == ["t", "task 2"]
    assert load_failures("-", io.BytesIO(path.read_bytes())) == load_failures(path)
    assert load_failures("-", io.StringIO(path.read_text(encoding="utf-8"))) == load_failures(path)
    assert load_failures(path)[1].model_extra == {"root_cause": "red"}


def test_unlabelled_failures_have_problems_too(tmp_path: Path) -> None:
    """And standard input has a name in them."""
    with pytest.raises(DatasetError, match="<stdin>:2: task is missing"):
        load_failures("-", io.BytesIO(b'{"task": "t", "actual_outcome": "a"}\n{"actual_outcome": "a"}'))
    with pytest.raises(DatasetError, match="<stdin>: the file is empty"):
        load_failures("-", io.StringIO(""))
    with pytest.raises(DatasetError, match="a folder; give one JSON Lines file"):
        load_failures(tmp_path)
