"""The list of runs: every kind, and no damage stops it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspy_reflex.errors import RunError
from dspy_reflex.runs.listing import Line, list_runs
from tests.optimize.compiles import ROOT
from tests.runs.folders import config, result, write_run


def put(folder: Path, name: str, value: object) -> None:
    """One JSON file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


def test_a_compile_is_a_line_with_score_and_cost(tmp_path: Path) -> None:
    """What was asked for, what came out, and what it cost."""
    write_run(tmp_path / "mine", partial="the budget of 40 calls is spent", finished="2026-01-02T03:04:05Z")
    (line,) = list_runs(tmp_path).runs
    assert line == Line(
        "mine", "compile", "root_cause@0123456789ab", "miprov2", "fake/1", "macro-F1", 0.62, (0.4, 0.8), 8, 40, 5100,
        0.0125, "the budget of 40 calls is spent", "2026-01-02T03:04:05Z",
    )  # fmt: skip


def test_runs_in_folders_below_are_found_in_order(tmp_path: Path) -> None:
    """As those of a search over settings."""
    for name in ("tune/trial-1", "b", "tune/trial-0"):
        write_run(tmp_path / name)
    assert [line.run for line in list_runs(tmp_path).runs] == ["b", "tune/trial-0", "tune/trial-1"]


def test_a_run_that_was_stopped_is_listed_as_unfinished(tmp_path: Path) -> None:
    """It has options and no result; any other folder with a `config.json` is none of ours."""
    put(tmp_path / "stopped", "config.json", config())
    put(tmp_path / "other", "config.json", {"name": "of somebody else"})
    assert list_runs(tmp_path).runs == (Line("stopped", "unfinished", "root_cause", "miprov2", "fake/1"),)


def test_a_benchmark_shows_the_score_that_it_is_about(tmp_path: Path) -> None:
    """Macro-F1, the rule score, or how often a person is asked; anything else has no score."""
    row = {"name": "root_cause@1", "interval": [0.1, 0.3], "needs_review": 0.2}
    put(tmp_path / "a", "result.json", {"dataset": "d", "n": 9, "rows": [{**row, "macro_f1": 0.25}]})
    put(tmp_path / "b", "result.json", {"dataset": "d", "n": 9, "rows": [{**row, "score": 0.21}]})
    put(tmp_path / "c", "result.json", {"dataset": "d", "n": 9, "rows": [row]})
    put(tmp_path / "d", "result.json", {"n": 3, "share": 0.5})
    lines = list_runs(tmp_path).runs
    assert [(line.kind, line.metric, line.score) for line in lines] == [
        ("benchmark", "macro-F1", 0.25), ("benchmark", "rule score", 0.21), ("benchmark", "needs review", 0.2),
        ("other", "", None),
    ]  # fmt: skip
    assert [line.n for line in lines] == [9, 9, 9, 3]


def test_what_is_damaged_is_a_sentence_and_the_list_goes_on(tmp_path: Path) -> None:
    """One for each."""
    write_run(tmp_path / "good")
    put(tmp_path / "bad1", "result.json", [])
    put(tmp_path / "bad2", "result.json", result(calls="many"))
    put(tmp_path / "bad3", "result.json", {"dataset": "d", "n": 1, "rows": []})
    (tmp_path / "bad4").mkdir()
    (tmp_path / "bad4" / "result.json").write_bytes(b"\xff\x00")
    found = list_runs(tmp_path)
    assert [line.run for line in found.runs] == ["good"]
    assert len(found.damaged) == 4
    for number, sentence in enumerate(found.damaged, 1):
        assert f"bad{number}" in sentence
        assert "\n" not in sentence


def test_the_committed_experiments_are_all_listed() -> None:
    """Benchmarks, readers, preferences."""
    found = list_runs(ROOT / "experiments")
    lines = {line.run: line for line in found.runs}
    assert found.damaged == ()
    assert (lines["failures-root_cause-test"].kind, lines["failures-root_cause-test"].n) == ("benchmark", 180)
    assert lines["rule-preference"].kind == "other"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """And not an empty list."""
    with pytest.raises(RunError, match="no such folder"):
        list_runs(tmp_path / "nowhere")
