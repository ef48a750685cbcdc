"""Run folders are read as far as they go, and what is damaged is one sentence that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import ReflexError, RunError
from dspy_reflex.runs.folder import read_run
from tests.runs.folders import PREDICTIONS, config, result, write_run


def test_a_run_is_read_whole(tmp_path: Path) -> None:
    """Options, outcome, both programs, and what the compiled one told of val."""
    run = read_run(write_run(tmp_path / "mine"))
    assert (run.name, run.model, run.config["settings"]["trials"]) == ("mine", "fake/1", 3)
    assert run.result.scores.uncompiled is not None
    assert (run.result.scores.value, run.result.scores.uncompiled.value) == (0.62, 0.31)
    assert [each.best for each in run.result.candidates] == [False, False, True]
    assert (run.result.ledger.tokens, run.result.ledger.usd) == (5100, 0.0125)
    assert run.program is not None
    assert run.uncompiled is not None
    assert len(run.program.data["demos"]) == 3
    assert [one.id for one in run.predictions] == [each["id"] for each in PREDICTIONS]
    assert [one.right for one in run.predictions] == [True, True, False, True, False, False, True, True]


def test_only_the_result_has_to_be_there(tmp_path: Path) -> None:
    """As in a run of a version that wrote no more than two files and knew less."""
    old = {"artifact": "a.json", "program": "root_cause@1", "run": "r", "calls": 3, "models": {}, "trials": []}
    scores = {"metric": "macro-F1", "value": 0.5, "interval": [0.4, 0.6], "n": 9, "on": "val"}
    (tmp_path / "result.json").write_text(json.dumps({**old, "scores": scores}), encoding="utf-8")
    run = read_run(tmp_path)
    assert (run.config, run.program, run.uncompiled, run.predictions, run.model) == ({}, None, None, (), "")
    assert (run.result.ledger.tokens, run.result.ledger.usd, run.result.candidates) == (None, None, ())


def test_a_price_that_is_not_known_makes_the_whole_bill_unknown(tmp_path: Path) -> None:
    """Part of a bill would read like all of it."""
    models = {"a": {"calls": 1, "usd": 0.1}, "b": {"calls": 1, "usd": None}}
    assert read_run(write_run(tmp_path / "mine", ledger={"models": models})).result.ledger.usd is None


def write(folder: Path, name: str, text: str) -> Path:
    """Put one file of a good run out of order."""
    (write_run(folder / "run") / name).write_text(text, encoding="utf-8")
    return folder / "run"


def broken(**changed: Any) -> str:
    """A `result.json` with a field that cannot be."""
    return json.dumps(result(**changed))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("result.json", "{", r"result.json: cannot be read \(Expecting property name"),
        ("result.json", "[]", "result.json: should hold one JSON object"),
        ("result.json", "[" * 100_000, "result.json: cannot be read"),
        ("result.json", broken(calls=-1), "result.json: calls: input should be greater than or equal to 0"),
        ("result.json", broken(candidates=[{"score": 1}]), r"candidates\.0\.candidate: field required"),
        ("result.json", broken(ledger={"models": {"m": {"usd": float("nan")}}}), "usd: input should be a finite number"),
        ("result.json", broken(scores={"metric": "F1"}), r"scores\.value: field required"),
        ("config.json", "nothing", "config.json: cannot be read"),
        ("program.json", "{}", "program.json: not a dspy-reflex program"),
        ("predictions.jsonl", '{"id": "v0"}\n{"id": "v1", "gold"', "predictions.jsonl:2: it: invalid json"),
        ("predictions.jsonl", '{"id": "v0", "confidence": 3}', "predictions.jsonl:1: confidence: input should be less"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(name: str, text: str, said: str, tmp_path: Path) -> None:
    """That names the file and what is wrong in it."""
    with pytest.raises(ReflexError, match=said) as error:
        read_run(write(tmp_path, name, text))
    assert "\n" not in str(error.value)


def test_a_line_separator_in_an_id_ends_no_line(tmp_path: Path) -> None:
    """JSON Lines end with a line feed only."""
    odd = {**PREDICTIONS[0], "id": "a\u2028b"}
    assert read_run(write_run(tmp_path / "run", predictions=[odd])).predictions[0].id == "a\u2028b"


def test_what_is_no_finished_compile_is_said_to_be_none(tmp_path: Path) -> None:
    """An empty folder, one that was stopped, and a benchmark."""
    with pytest.raises(RunError, match="no run is there"):
        read_run(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config()), encoding="utf-8")
    with pytest.raises(RunError, match="not finished; go on with `dspy-reflex compile --resume"):
        read_run(tmp_path)
    (tmp_path / "result.json").write_text('{"dataset": "d", "rows": []}', encoding="utf-8")
    with pytest.raises(RunError, match="the result of no compile"):
        read_run(tmp_path)
