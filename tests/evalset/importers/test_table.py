"""Tables of any kind through a map of their columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dspy_reflex.errors import ConfigError, DatasetError
from dspy_reflex.evalset.importers.imported import Imported
from dspy_reflex.evalset.importers.registry import import_failures
from dspy_reflex.evalset.importers.table import import_frame
from dspy_reflex.evalset.problems import Problems
from tests.evalset.importers.published import write

MAP = {"task": "question", "actual_outcome": "answer", "root_cause": "label"}


def csv(folder: Path, content: str, **columns: str) -> Imported:
    """A CSV file, imported."""
    path = folder / "table.csv"
    path.write_bytes(content.encode())
    return import_failures("table", str(path), columns=MAP | columns)


def lines(folder: Path, *rows: dict[str, Any], **columns: str) -> Imported:
    """A JSON Lines file, imported."""
    return import_failures("table", str(write(folder / "table.jsonl", rows)), columns=MAP | columns)


def test_a_csv_file_with_byte_order_mark_crlf_and_line_breaks_in_cells(tmp_path: Path) -> None:
    content = '\ufeffquestion,answer,label\r\n"How\r\nmany?",7,slip\r\nWho?,me,guess\r\n'
    found = csv(tmp_path, content)
    assert [(row["id"], row["task"], row["actual_outcome"], row["root_cause"]) for row in found.rows] == [
        ("table-2", "How\r\nmany?", "7", "slip"),
        ("table-3", "Who?", "me", "guess"),
    ]


def test_a_column_of_a_fields_own_name_needs_no_map_and_others_are_left_out(tmp_path: Path) -> None:
    row = {"id": "a", "question": "q", "answer": "a", "label": "x", "agent_id": "bot", "colour": "red"}
    (found,) = lines(tmp_path, row).rows
    assert (found["id"], found["agent_id"]) == ("a", "bot")
    assert "colour" not in found


def test_a_list_of_labels_is_a_cause_and_what_is_also_acceptable(tmp_path: Path) -> None:
    row = {"question": "q", "answer": "a", "label": ["x", "y", "x"], "also_acceptable": "z"}
    (found,) = lines(tmp_path, row).rows
    assert (found["root_cause"], found["also_acceptable"]) == ("x", ["y", "z"])
    assert found["label_native"] == ["x", "y", "x"]


def test_rows_without_a_label_are_counted(tmp_path: Path) -> None:
    labels: list[Any] = ["x", "", None, []]
    found = lines(tmp_path, *({"question": f"q{at}", "answer": "a", "label": label} for at, label in enumerate(labels)))
    assert (len(found.rows), dict(found.skipped)) == (1, {"no label": 3})


def test_a_table_without_a_label_column_gives_unlabelled_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [{"task": "t", "actual_outcome": "a"}])
    (row,) = import_failures("table", str(path)).rows
    assert row["root_cause"] is None


def test_a_blank_outcome_says_that_nothing_came_out(tmp_path: Path) -> None:
    (row,) = lines(tmp_path, {"question": "q", "answer": "", "label": "x"}).rows
    assert row["actual_outcome"] == "(nothing)"


@pytest.mark.parametrize("column", ["reason", "mistake_reason", "description", "evidence", "explanation"])
def test_what_annotators_wrote_is_carried_apart_without_being_asked_for(column: str, tmp_path: Path) -> None:
    found = lines(tmp_path, {"id": "a", "question": "q", "answer": "a", "label": "x", column: "it was careless"})
    assert found.explanations == {"a": "it was careless"}
    assert "careless" not in str(found.rows)


def test_a_column_that_is_something_else_is_no_explanation(tmp_path: Path) -> None:
    row = {"description": "do it", "answer": "a", "label": "x"}
    found = import_failures("table", str(write(tmp_path / "t.jsonl", [row])), columns=MAP | {"task": "description"})
    assert (found.rows[0]["task"], dict(found.explanations)) == ("do it", {})


def test_an_explanation_cannot_be_mapped_into_a_row(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'why' is an explanation and cannot be context"):
        lines(tmp_path, {"question": "q", "answer": "a", "label": "x", "why": "w"}, explanation="why", context="why")


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"tusk": "question"}, "'tusk' is no field; the fields are id, source"),
        ({"task": "frage"}, "there is no column 'frage'; the table has question, answer"),
        ({"task": "question"}, "no column is actual_outcome; say which with actual_outcome=COLUMN"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(columns: dict[str, str], complaint: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [{"question": "q", "answer": "a"}])
    with pytest.raises((ConfigError, DatasetError), match=complaint):
        import_failures("table", str(path), columns=columns)


def test_a_data_frame_is_a_table_and_what_pandas_misses_is_nan() -> None:
    frame = pd.DataFrame(
        {
            "question": ["q1", None, "q3"],
            "answer": ["a", "b", "c"],
            "label": ["x", "y", float("nan")],
            "context": [[1], {}, "t"],
        }
    )
    problems = Problems()
    found = import_frame(frame, problems, MAP)
    assert [(row["task"], row["context"]) for row in found.rows] == [("q1", [1])]
    assert [str(one) for one in problems.found] == ["frame:2: task is NaN; write what the agent was asked to do"]
    assert dict(found.skipped) == {"no label": 1, "could not be used": 1}
