"""A run in a real MLflow store: SQLite, in a scratch folder."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import MissingExtraError, RunError
from dspy_reflex.runs.folder import read_run
from dspy_reflex.runs.tracking import log_run
from tests.runs.folders import config, result, write_run

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


def test_without_mlflow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"\[mlflow\]"):
        log_run(read_run(write_run(tmp_path / "mine")), "sqlite:///unused.db")


@pytest.fixture
def tracking() -> Any:
    """MLflow's client module."""
    return pytest.importorskip("mlflow.tracking")


@pytest.mark.usefixtures("in_empty_folder")
def test_a_run_is_logged_with_options_scores_steps_and_files(
    tracking: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And twice is two runs of one experiment."""
    many = [{"candidate": n, "score": n / 260, "calls": n, "tokens": 10 * n} for n in range(260)]
    long = config(settings={"trials": 3, "note": "x" * 5000})
    run = read_run(write_run(tmp_path / "mine", candidates=many, asked=long))
    uri = f"sqlite:///{tmp_path / 'm.db'}"
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    first = log_run(run, uri, "colours")
    switches: Any = import_module("mlflow.environment_variables")
    client = tracking.MlflowClient(tracking_uri=uri)
    logged = client.get_run(first)
    assert (logged.info.run_name, logged.info.status) == ("mine", "FINISHED")
    assert logged.data.tags["program"] == "root_cause@0123456789ab"
    assert logged.data.params["settings.trials"] == "3"
    assert len(logged.data.params["settings.note"]) == 500
    told = result()["scores"]
    wanted = {"score": told["value"], "score.low": told["interval"][0], "score.uncompiled": 0.31, "usd": 0.0125}
    wanted |= {"tokens": 5100, "evaluate.replayed": 10, "bootstrap.calls": 4}
    assert {name: logged.data.metrics[name] for name in wanted} == wanted
    steps = client.get_metric_history(first, "candidate.score")
    assert [(each.step, each.value) for each in steps] == [(n, n / 260) for n in range(260)]
    assert [each.step for each in client.get_metric_history(first, "learning_curve")] == [10, 20]
    files = {each.path for each in client.list_artifacts(first)}
    assert {"report.html", "report.md", "program.json", "predictions.jsonl", "candidates.png"} <= files
    assert switches.MLFLOW_DISABLE_TELEMETRY.get() is True  # as MLflow reads it: nobody else is told
    log_run(run, uri, "colours")
    place = client.get_experiment_by_name("colours").experiment_id
    assert len(client.search_runs([place])) == 2


@pytest.mark.usefixtures("tracking")
def test_a_store_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    """Named by its address."""
    run = read_run(write_run(tmp_path / "mine"))
    with pytest.raises(RunError, match="nonsense://x: the run could not be logged") as error:
        log_run(run, "nonsense://x")
    assert "\n" not in str(error.value)
