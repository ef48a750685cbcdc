"""`dspy-reflex experiments`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.runner import Reflex, process
from tests.runs.folders import PREDICTIONS, config, write_run


@pytest.fixture
def runs(in_empty_folder: Path) -> Path:
    """`experiments` with two runs, `a` and `b`."""
    write_run(in_empty_folder / "experiments" / "a")
    asked = config(seed=1)
    write_run(
        in_empty_folder / "experiments" / "b",
        asked=asked,
        predictions=[{**row, "told": "red"} for row in PREDICTIONS],
        calls=80,
    )
    return in_empty_folder / "experiments"


def test_list_is_a_table_of_what_is_known(runs: Path, reflex: Reflex) -> None:
    """Columns that no run fills are not there; a damaged run is a warning."""
    (runs / "bad").mkdir()
    (runs / "bad" / "result.json").write_text("[", encoding="utf-8")
    done = reflex("experiments", "list")
    assert done.code == 0
    head, first, second = done.out.splitlines()
    assert head.split() == ["run", "kind", "program", "optimizer", "model", "score", "n", "calls", "tokens", "USD"]
    assert first.split()[:4] == ["a", "compile", "root_cause@0123456789ab", "miprov2"]
    assert "macro-F1 0.620 [0.400, 0.800]" in second
    assert done.err.startswith("warning: experiments/bad/result.json: cannot be read")


def test_list_as_json_has_runs_and_damage(runs: Path, reflex: Reflex) -> None:
    """Another folder can be named."""
    found = reflex("experiments", "list", runs / "a", "--json").json
    assert ([each["run"] for each in found["runs"]], found["damaged"]) == (["."], [])
    assert (found["runs"][0]["score"], found["runs"][0]["tokens"]) == (0.62, 5100)


def test_show_prints_the_report_and_writes_the_page_once(runs: Path, reflex: Reflex) -> None:
    """By name or by folder; a page that is there is left alone."""
    out = reflex("experiments", "show", "a").out
    for text in ("Compile of root_cause@0123456789ab", "macro-F1 0.620", "+- red: fire +0.9", "dropped early"):
        assert text in out
    page = runs / "a" / "report.html"
    assert out.rstrip().endswith("with pictures: experiments/a/report.html")
    page.write_text("mine", encoding="utf-8")
    found = reflex("experiments", "show", runs / "a", "--json").json
    assert (found["report"], page.read_text(encoding="utf-8")) == (str(page), "mine")
    assert [each["id"] for each in found["mistakes"]] == ["v4", "v2"]


@pytest.mark.usefixtures("runs")
def test_compare_says_what_differs(reflex: Reflex) -> None:
    """Second against first."""
    out = reflex("experiments", "compare", "a", "b").out
    assert "experiments/b against experiments/a" in out
    assert "On the 8 rows that both answered" in out
    assert "2.00 times" in out
    found = reflex("experiments", "compare", "a", "b", "--json").json
    assert found["options"] == {"seed": ["0", "1"]}
    assert found["paired"]["n"] == 8
    assert found["paired"]["difference"] < 0
    assert found["cost"]["calls"]["ratio"] == 2


@pytest.mark.usefixtures("runs")
def test_log_needs_an_address_that_works(reflex: Reflex) -> None:
    """One sentence, and no traceback of MLflow's."""
    pytest.importorskip("mlflow.tracking")
    assert "nonsense://x" in reflex("experiments", "log", "a", "--mlflow", "nonsense://x").refusal
    assert "--mlflow" in reflex("experiments", "log", "a").refusal


def test_what_compile_leaves_behind_can_be_listed_shown_and_compared(
    library: Path, reflex: Reflex, in_empty_folder: Path
) -> None:
    """Both programs, as they were just compiled."""
    for name in ("cause", "rule"):
        shutil.copytree(library / name / "run", in_empty_folder / "experiments" / name)
    lines = reflex("experiments", "list", "--json").json["runs"]
    assert [(line["kind"], line["metric"], line["n"]) for line in lines] == [
        ("compile", "macro-F1", 18), ("compile", "rule score", 18),
    ]  # fmt: skip
    assert all(line["calls"] and line["tokens"] for line in lines)
    cause = reflex("experiments", "show", "cause", "--json").json
    assert len(cause["demos"]) == sum(cause["result"]["coverage"].values())
    right = cause["result"]["scores"]["n"] - len(cause["mistakes"]) - len(cause["unusable"])
    assert sum(round(each["n"] * each["right"]) for each in cause["reliability"]) == right
    assert "The lowest scores of 18 rules" in reflex("experiments", "show", "rule").out
    found = reflex("experiments", "compare", "cause", "rule", "--json").json
    assert (found["options"]["program"], found["paired"]) == (["root_cause", "rule"], None)


@pytest.mark.parametrize("command", ["show", "compare", "log"])
def test_a_run_that_is_not_there_is_one_sentence(command: str, reflex: Reflex) -> None:
    """Looked for here and below ./experiments."""
    more = {"compare": ["b"], "log": ["--mlflow", "sqlite:///m.db"]}.get(command, [])
    assert "experiments/nope: no run is there" in reflex("experiments", command, "nope", *more).refusal
    assert "experiments: no such folder" in reflex("experiments", "list").refusal


@pytest.mark.usefixtures("runs")
def test_without_the_extra_runs_are_listed_and_not_shown(in_empty_folder: Path) -> None:
    """A list needs no plotter; a report does, and says so in one sentence."""
    missing = "import sys; sys.modules.update(dict.fromkeys(('matplotlib', 'numpy', 'scipy', 'jinja2', 'dspy')))"
    done = process(in_empty_folder, "experiments", "list", before=missing)
    assert (done.code, done.out.count("miprov2")) == (0, 2), done.err
    assert "[compile]" in process(in_empty_folder, "experiments", "show", "a", before=missing).refusal
