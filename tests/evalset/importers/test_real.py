"""Importers against the published files themselves: counts, and what of an annotator's words a program could see."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex import load_program, load_taxonomy
from dspy_reflex.evalset.importers.imported import Imported
from dspy_reflex.evalset.importers.mapping import load_mapping, to_six
from dspy_reflex.evalset.importers.registry import import_failures
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.writing import to_lines
from dspy_reflex.runtime.inputs import LIMITS, cause_inputs
from dspy_reflex.runtime.render import render
from tests.evalset.importers.published import NATIVE, NATIVE_COLUMNS, objects, shared

PIECE = 60
"""Characters of an explanation that must not be found in a prompt."""
EDGE = 8
"""Characters at either end of a piece that may be of an excerpt's own headings, such as `user: `."""
HEAD = 700
"""Characters at the start of a task that are there even if it is cut."""
SOURCES = ("raw/whowhen", "raw/trail", *(f"native_{name}.dev.jsonl" for name in NATIVE))


def imported(source: str) -> Imported:
    """Either a folder as published, or a flattened table."""
    place = shared(*source.split("/"))
    if place.is_dir():
        return import_failures(place.name, str(place))
    return import_failures("table", str(place), columns=NATIVE_COLUMNS)


def rows_of(source: str) -> list[dict[str, Any]]:
    """Its rows."""
    return [dict(row) for row in imported(source).rows]


def documents(folder: Path) -> dict[str, Any]:
    """Every JSON file of a folder by its name, read without the package."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}


def test_every_run_of_whowhen_is_a_row_with_its_agent_and_step() -> None:
    runs = documents(shared("raw", "whowhen")).values()
    wanted = Counter((run["mistake_agent"], f"step {run['mistake_step']}") for run in runs)
    rows = rows_of("raw/whowhen")
    assert Counter(tuple(row["label_native"]) for row in rows) == wanted
    assert {row["root_cause"] for row in rows} == {None}
    asked = {(run["question"].strip()[:HEAD], run["ground_truth"]) for run in runs}
    assert {(str(row["task"])[:HEAD], row["expected_outcome"]) for row in rows} == asked


def test_the_categories_of_trail_are_those_of_its_annotations() -> None:
    marks = [error for found in documents(shared("raw", "trail", "annotations")).values() for error in found["errors"]]
    rows = rows_of("raw/trail")
    assert Counter(label for row in rows for label in row["label_native"]) == Counter(
        error["category"] for error in marks
    )
    assert len(marks) == 43
    assert len(rows) == 17


def test_a_row_of_trail_is_a_span_with_its_first_category_and_the_others() -> None:
    wanted: dict[str, list[str]] = {}
    for name, found in documents(shared("raw", "trail", "annotations")).items():
        for error in found["errors"]:
            wanted.setdefault(f"trail-{name[:12]}-{error['location'][:10]}", []).append(error["category"])
    rows = {str(row["id"]): row for row in rows_of("raw/trail")}
    assert {name: row["root_cause"] for name, row in rows.items()} == {name: all_[0] for name, all_ in wanted.items()}
    assert {name: {row["root_cause"], *row["also_acceptable"]} for name, row in rows.items()} == {
        name: set(all_) for name, all_ in wanted.items()
    }


@pytest.mark.parametrize("name", NATIVE)
def test_a_flattened_set_comes_through_a_column_map_label_by_label(name: str) -> None:
    rows = objects(shared(f"native_{name}.dev.jsonl"))
    labelled = [row for row in rows if row["label_native"]]
    found = imported(f"native_{name}.dev.jsonl")
    assert found.labels == dict(Counter(row["label_native"][0] for row in labelled).most_common())
    assert dict(found.skipped) == ({"no label": len(rows) - len(labelled)} if len(rows) > len(labelled) else {})
    assert dict(found.explanations) == {row["id"]: row["reason"].strip() for row in labelled if row["reason"].strip()}
    assert [(row["id"], row["group"]) for row in found.rows] == [(row["id"], row["group"]) for row in labelled]


@pytest.mark.parametrize("name", NATIVE)
def test_every_label_of_a_flattened_set_has_a_line_in_its_mapping(name: str) -> None:
    mapping = load_mapping(NATIVE[name])
    rows = objects(shared(f"native_{name}.dev.jsonl"))
    assert {label for row in rows for label in row["label_native"] or ()} <= mapping.keys()


def test_two_readers_find_their_cause_among_the_mapped_ones_nine_times_in_ten() -> None:
    """Of 71 spans of TRAIL; the table was chosen with this cross-tabulation in view, so it is a check and no evidence."""
    readers = {row["id"]: row["root_cause"] for row in objects(shared("real_six.dev.jsonl"))}
    six = to_six(imported("native_trail.dev.jsonl"), load_mapping("trail"))
    rows: list[dict[str, Any]] = [dict(row) for row in six.imported.rows]
    both = [row for row in rows if row["id"] in readers]
    agreed = [row for row in both if readers[row["id"]] in (row["root_cause"], *row["also_acceptable"])]
    assert len(both) == 71
    assert len(agreed) / len(both) > 0.9


@pytest.mark.parametrize("name", ["raw/trail", "native_trail.dev.jsonl", "native_whowhen.dev.jsonl"])
def test_what_is_written_is_a_labelled_set_of_the_native_preset(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(to_lines(imported(name).rows))
    taxonomy = load_taxonomy("whowhen" if "whowhen" in name else "trail")
    assert len(load_evalset(path, taxonomy).rows) == len(imported(name).rows)


@pytest.mark.parametrize("name", ["raw/whowhen", "raw/trail"])
def test_a_row_holds_no_more_than_a_program_sees(name: str) -> None:
    for row in rows_of(name):
        for field, text in cause_inputs(row).items():
            assert len(text) <= LIMITS[field]
            assert text.count("characters left out") == json.dumps(row[field]).count("characters left out")


def test_the_same_question_is_one_group_in_both_data_sets() -> None:
    """No question may be trained on in one and asked in the other."""
    groups = {row["group"] for row in objects(shared("native_whowhen.dev.jsonl"))}
    rows = rows_of("raw/whowhen")
    assert sum(row["group"] in groups for row in rows) >= len(rows) - 2


@pytest.mark.parametrize("source", SOURCES)
def test_no_explanation_reaches_a_prompt(source: str) -> None:
    """Neither as a whole nor in pieces, but for words that the run's own log has."""
    found = imported(source)
    program = load_program("root_cause")
    assert found.explanations
    for row in found.rows:
        explanation = found.explanations.get(str(row["id"]), "")
        inputs = cause_inputs(row)
        prompt = "\n".join(str(message["content"]) for message in render(program.artifact, inputs))
        shown = set(pieces("\n".join(inputs.values())))
        assert not explanation or explanation not in prompt
        found_again = [piece for piece in pieces(explanation) if piece in shown]
        log = log_of(source, row) if found_again else ""
        assert not [piece for piece in found_again if piece[EDGE:-EDGE].strip() not in log]


def pieces(text: str) -> Iterator[str]:
    """All runs of so many characters, white space apart."""
    flat = " ".join(text.split())
    return (flat[at : at + PIECE] for at in range(len(flat) - PIECE + 1))


def log_of(source: str, row: dict[str, Any]) -> str:
    """The run itself, as published; for a flattened set, its columns that are not an annotator's."""
    if source == "raw/trail":
        (file,) = shared("raw", "trail", "traces").glob(f"{row['id'].split('-')[1]}*.json")
        return flat_text(json.loads(file.read_text(encoding="utf-8"))["spans"])
    if source == "raw/whowhen":
        (run,) = [
            run for run in documents(shared("raw", "whowhen")).values() if row["id"].endswith(str(run["question_ID"]))
        ]
        return flat_text([run["question"], run["ground_truth"], run["history"]])
    (line,) = [line for line in objects(shared(source)) if line["id"] == row["id"]]
    return flat_text([line["task"], line["expected"], line["actual"], line["trace_excerpt"]])


def flat_text(value: Any) -> str:
    """All texts in a value, white space apart."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return "\n".join(flat_text(item) for item in value)
    return " ".join(str(value).split())
