"""What is said about files that are broken, of another version, or not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import ConfigError, DatasetError, MissingExtraError
from dspy_reflex.evalset.importers.registry import FORMATS, IMPORTERS, import_failures
from dspy_reflex.evalset.problems import MAX_SHOWN, Problems
from tests.evalset.importers.published import (
    aeb_label,
    aeb_run,
    agentrx_annotation,
    agentrx_run,
    mast_run,
    trail_error,
    trail_trace,
    whowhen_run,
    write,
)


def refusal(name: str, path: Path | str, **columns: str) -> str:
    """What is said, with the problems of several lines on one."""
    with pytest.raises(DatasetError) as raised:
        import_failures(name, str(path), columns=columns)
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "run.json:1: the file is empty; fetch it again"),
        (b'{"a": \xff}', "run.json:1: not UTF-8 at byte 7; save the file as UTF-8"),
        (b'{"a": NaN}', "run.json:1: NaN is not a JSON number; use null"),
        (b'{"a": ', "run.json:1: not JSON (Expecting value"),
        (b'{"a": 1}\n{"a": 2}', "or name it .jsonl if it has one object a line"),
        (b"[1]", "run.json:1: a JSON int where an object is needed"),
        (b"[" * 100_000, "run.json:1: nested too deeply to read"),
    ],
)
def test_a_document_that_cannot_be_read(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    assert complaint in refusal("whowhen", path)


def test_a_byte_order_mark_and_crlf_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(whowhen_run(), indent=1).replace("\n", "\r\n").encode())
    assert len(import_failures("whowhen", str(path)).rows) == 1


def test_a_file_of_ten_megabytes_gives_a_row_of_the_usual_size(tmp_path: Path) -> None:
    run = whowhen_run()
    run["history"][1]["content"] = "x" * 10_000_000
    (row,) = import_failures("whowhen", str(write(tmp_path / "run.jsonl", [run]))).rows
    assert len(json.dumps(row)) < 20_000


def test_everything_that_a_file_of_another_version_lacks_is_said_at_once(tmp_path: Path) -> None:
    run = whowhen_run(mistake_step="first")
    del run["mistake_agent"], run["question"]
    said = refusal("whowhen", write(tmp_path / "run.json", run))
    assert said.startswith("3 problems, nothing was read:")
    assert "run.json:1: question is missing; is this Who&When as published, or another version of it?" in said
    assert "run.json:1: mistake_agent is missing" in said
    assert "run.json:1: mistake_step cannot be used (Input should be a valid integer" in said


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_file_of_something_else_is_refused_by_every_format(name: str, tmp_path: Path) -> None:
    said = refusal(name, write(tmp_path / "x.json", {"hello": "world"}))
    assert "x.json:1: " in said
    assert "is missing; is this" in said


def test_a_long_list_of_problems_is_cut(tmp_path: Path) -> None:
    said = refusal("whowhen", write(tmp_path / "x.jsonl", [{"a": 1}] * 30))
    assert len(said.splitlines()) == MAX_SHOWN + 2
    assert said.startswith("150 problems")


CASES: list[tuple[str, list[dict[str, Any]], str]] = [
    ("whowhen", [whowhen_run(mistake_step="9")], "mistake_step is 9, the run has 4 steps; correct it"),
    ("whowhen", [whowhen_run(), whowhen_run()], "id 'whowhen-algorithm-q1' is already at "),
    ("whowhen", [whowhen_run(question=" ")], "task is blank; write what the agent was asked to do"),
    ("whowhen", [whowhen_run(question_ID="q" * 300)], "id cannot be used (String should have at most 200"),
    ("trail", [{"trace_id": "t9", "errors": [trail_error("Language-only")]}], "there is no trace 't9'; put traces and"),
    ("trail", [{"trace": "{", "labels": "{}"}], "trace or labels is no JSON object"),
    ("mast", [{"mas_name": "a", "trace_id": 1, "trace": {}}], "no mast_annotation and no annotations"),
    ("agentrx", [agentrx_annotation()], "there is no run '12'; put runs and annotations into one folder"),
    (
        "agentrx",
        [agentrx_annotation() | {"root_cause": {"failure_id": 7}}, agentrx_run()],
        "root_cause.failure_id '7' is none of its failures",
    ),
    (
        "agentrx",
        [agentrx_annotation(), agentrx_run() | {"steps": []}],
        "step_number is 2, the run has no such step; correct it",
    ),
    ("agenterrorbench", [aeb_label()], "there is no run GPT-4o_001_a.json; give the folder with labels"),
]


@pytest.mark.parametrize(("name", "records", "complaint"), CASES)
def test_a_record_that_contradicts_itself_or_lacks_its_other_half(
    name: str, records: list[dict[str, Any]], complaint: str, tmp_path: Path
) -> None:
    assert complaint in refusal(name, write(tmp_path / "all.jsonl", records))


def test_a_critical_step_that_the_run_does_not_have(tmp_path: Path) -> None:
    write(tmp_path / "labels.json", [aeb_label() | {"critical_failure_step": 5, "step_annotations": []}])
    assert "no failure type is given 1" in refusal(
        "agenterrorbench", write(tmp_path / "GPT-4o_001_a.json", aeb_run()).parent
    )
    label = aeb_label()
    label["critical_failure_step"] = label["step_annotations"][0]["step"] = 5
    write(tmp_path / "labels.json", [label])
    assert "critical_failure_step is 5, the run has 2 steps; correct it" in refusal("agenterrorbench", tmp_path)


def test_good_records_are_kept_if_bad_ones_are_to_be_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", [whowhen_run(1), {"hello": 1}, whowhen_run(2), whowhen_run(1)])
    path.write_bytes(path.read_bytes() + b"\xff\n")
    skipped = Problems()
    found = import_failures("whowhen", str(path), skipped=skipped)
    assert [row["task"] for row in found.rows] == ["How many of 1?", "How many of 2?"]
    assert dict(found.skipped) == {"could not be used": 3}
    assert {one.where.rpartition(":")[2] for one in skipped.found} == {"2", "4", "5"}


def test_if_no_record_can_be_used_that_is_an_error_even_then(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", {"hello": 1})
    with pytest.raises(DatasetError, match="it gives no row \\(could not be used 1\\); is it really mast"):
        import_failures("mast", str(path), skipped=Problems())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"task,actual_outcome\nNaN,a\n", "t.csv:2: task is NaN; write what the agent was asked to do"),
        (b"task,actual_outcome\n,a\n", "t.csv:2: task is blank; write what the agent was asked to do"),
        (b"task,actual_outcome\na,nan\n", "t.csv:2: actual_outcome is NaN; write what came out instead"),
        (b"id,task,actual_outcome\n1,a,b\n1,c,d\n", "t.csv:3: id '1' is already at "),
        (b"task,actual_outcome\na,b,c,d\ne,f,g,h,i\n", "t.csv:1: not CSV ("),
        (b"task,actual_outcome\n\xe4,b\n", "t.csv:1: not UTF-8 ("),
        (b"", "t.csv:1: not CSV (No columns to parse from file); write a header line"),
    ],
)
def test_a_table_that_cannot_be_used(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert complaint in refusal("table", path)


def test_a_value_that_json_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"task": "t", "actual_outcome": "a", "context": {"x": 1e999}}', encoding="utf-8")
    assert "it holds NaN or an infinity" in refusal("table", path)
    path.write_text('{"task": "t \\ud800", "actual_outcome": "a"}', encoding="utf-8")
    assert "half a character" in refusal("table", path)


def test_what_is_not_there_or_of_another_kind(tmp_path: Path) -> None:
    assert "no such file or folder; give what was published, or hf:owner/name" in refusal("mast", tmp_path / "no.json")
    assert "no .json, .jsonl, .csv file in this folder" in refusal("mast", tmp_path)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    assert "a file that is not read; give .json, .jsonl, .csv" in refusal("mast", tmp_path / "t.parquet")


def test_columns_are_for_tables_and_formats_have_names(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", mast_run())
    with pytest.raises(ConfigError, match="columns are mapped for a table only; mast has its own"):
        import_failures("mast", str(path), columns={"task": "q"})
    with pytest.raises(ConfigError, match=f"'mats' is no format; the formats are {', '.join(FORMATS)}"):
        import_failures("mats", str(path))


@pytest.mark.parametrize(("missing", "name"), [("pandas", "t.csv"), ("datasets", "hf:a/b")])
def test_without_the_extra_there_is_a_sentence(
    missing: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    (tmp_path / "t.csv").write_text("task\na\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingExtraError, match="needs the extra"):
        import_failures("table", name)


def test_a_trace_may_not_be_of_another_shape(tmp_path: Path) -> None:
    trace = trail_trace()
    trace["spans"][0]["child_spans"] = [{"span_name": "nameless"}]
    assert "spans.0.child_spans.0.span_id is missing; is this TRAIL" in refusal(
        "trail", write(tmp_path / "t.json", trace)
    )
