"""`dspy-reflex tune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import Reflex, files_below, process

QUICK = ("--optimizer", "labeled_few_shot", "--optimizer", "bootstrap_few_shot", "--trials", 2)
MODULES = "import atexit, sys\natexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))"


def test_json_is_all_of_stdout_and_nothing_becomes_current(small: Path, tmp_path: Path) -> None:
    """In a real process: every file is below the study's folder."""
    done = process(tmp_path, "tune", "root_cause", "--dataset", small, *QUICK, "--json")
    assert done.code == 0, done.err
    assert done.json["trials"]["complete"] == done.json["planned"] == 2
    assert {one["choices"]["optimizer"] for one in done.json["tried"]} == {"labeled_few_shot", "bootstrap_few_shot"}
    out = tmp_path / "experiments" / "tune-root_cause"
    assert json.loads((out / "study.json").read_text(encoding="utf-8")) == done.json
    assert [path.name for path in tmp_path.iterdir()] == ["experiments"]
    assert {"study.journal", "report.md", "pareto.png", "study.json", "trial-0", "trial-1"} == {
        path.name for path in out.iterdir()
    }
    assert [line for line in done.err.splitlines() if not line.startswith("trial-")] == []


def test_people_are_told_what_it_brought_and_again_what_is_known(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """The same command on a finished study only tells."""
    arguments = (
        "tune",
        "rule",
        "--dataset",
        small,
        *QUICK,
        "--study",
        "s",
        "--out",
        "o",
        "--storage",
        "sqlite:///s.db",
    )
    first = reflex(*arguments)
    assert first.code == 0, first.err
    assert first.out.startswith("s: 2 complete\n  trial ")
    assert "tokens a call, " in first.out
    assert first.out.endswith("report in o/report.md\n")
    before = files_below(tmp_path)
    again = reflex(*arguments)
    assert (again.out, again.err) == (first.out, "")
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--storage", "mysql://me:secret@db/x"], "--storage takes journal:PATH"),
        (["--lm", "gpt-4o"], "'gpt-4o' is not known"),
        (["--prompt-lm", "openai/gpt-4o"], "needs a key: set OPENAI_API_KEY"),
        (["--optimizer", "magic"], "'magic' is not one of"),
        (["--dataset", "nope.jsonl"], "nope.jsonl: no such file"),
        (["--taxonomy", "nope.toml"], "no taxonomy 'nope.toml'"),
        (["--trials", "0"], "not in the range"),
    ],
)
def test_what_cannot_be_used_is_named_before_a_study_is_begun(
    arguments: list[str], said: str, small: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """One sentence, exit code 2, nothing written."""
    data = [] if "--dataset" in arguments else ["--dataset", str(small)]
    refusal = reflex("tune", "root_cause", *data, *arguments).refusal
    assert said in refusal
    assert "secret" not in refusal
    assert not list(tmp_path.iterdir())


def test_a_database_that_is_not_there_is_one_sentence(small: Path, reflex: Reflex) -> None:
    """With its address, without the password."""
    refusal = reflex(
        "tune", "root_cause", "--dataset", small, "--storage", "postgresql://me:secret@127.0.0.1:1/x"
    ).refusal
    assert "postgresql+psycopg://me:***@127.0.0.1:1/x: cannot be opened" in refusal


def test_help_is_free(tmp_path: Path) -> None:
    """Neither DSPy nor Optuna is imported for it."""
    done = process(tmp_path, "tune", "--help", before=MODULES)
    assert done.code == 0
    assert "--storage" in done.out
    assert not {"dspy", "optuna", "sqlalchemy", "numpy", "sklearn"} & {*done.err.split()}
