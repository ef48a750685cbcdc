"""A run as MLflow has runs: options as parameters, candidates as steps, scores and cost as metrics, the report beside it.

Needs the extra [mlflow]. Nothing is logged while a compile runs: a tracking server that is down never costs a compile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dspy_reflex.errors import MissingExtraError, RunError
from dspy_reflex.runs.folder import CONFIG, PREDICTIONS, PROGRAM, RESULT, UNCOMPILED, Run
from dspy_reflex.runs.report import HTML, MARKDOWN, write_run_report
from dspy_reflex.runs.result import Candidate

EXPERIMENT = "dspy-reflex"
PARAMETER_CHARS = 500
"""Longest value of a parameter that every MLflow server takes."""
MANNERS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""By default MLflow tells its makers what it is used for, and tries an address that does not answer for four minutes."""
FILES = (CONFIG, RESULT, PROGRAM, UNCOMPILED, PREDICTIONS, MARKDOWN, HTML)
"""What is kept of a run, with its pictures; the journal stays where it is."""


def log_run(run: Run, tracking_uri: str, experiment: str = EXPERIMENT) -> str:
    """Log a finished compile; the id of the new MLflow run is returned. Its report is written first if there is none.

    Args:
        run: The compile.
        tracking_uri: As MLflow takes it: `sqlite:///mlflow.db`, `http://127.0.0.1:5000`.
        experiment: Name of the MLflow experiment; made if it is not there.

    Raises:
        MissingExtraError: MLflow is not installed.
        RunError: The store cannot be used.
    """
    if not (run.folder / HTML).is_file():
        write_run_report(run.folder)
    client, trouble = _mlflow()
    try:
        return _log(client(tracking_uri=tracking_uri), run, experiment)
    except trouble as error:
        said = " ".join(str(error).split())
        raise RunError(f"{tracking_uri}: the run could not be logged ({said}); check the address") from None


def _log(client: Any, run: Run, experiment: str) -> str:
    from mlflow.entities import Metric, Param

    known = client.get_experiment_by_name(experiment)
    place = known.experiment_id if known else client.create_experiment(experiment)
    logged = client.create_run(place, run_name=run.name, tags={"program": run.result.program}).info.run_id
    now = int(time.time() * 1000)
    client.log_batch(
        logged,
        metrics=[Metric(name, value, now, step) for name, value, step in _metrics(run)],
        params=[Param(name, value[:PARAMETER_CHARS]) for name, value in run.options.items()],
    )
    for path in _files(run.folder):
        client.log_artifact(logged, str(path))
    client.set_terminated(logged)
    return logged


def _metrics(run: Run) -> Iterator[tuple[str, float, int]]:
    """Name, value and step."""
    result, bill = run.result, run.result.ledger
    uncompiled = result.scores.uncompiled
    once = {
        "score": result.scores.value,
        "score.low": result.scores.interval[0],
        "score.high": result.scores.interval[1],
        "score.uncompiled": uncompiled.value if uncompiled else None,
        "calls": result.calls,
        "tokens": bill.tokens,
        "usd": bill.usd,
        "seconds": bill.seconds,
    }
    yield from ((name, value, 0) for name, value in once.items() if value is not None)
    for name, phase in bill.phases.items():
        yield from ((f"{name}.{what}", count, 0) for what, count in phase.model_dump().items())
    for candidate in result.candidates:
        yield from _steps(candidate)
    yield from (("learning_curve", point.value, point.rows) for point in result.learning_curve or ())


def _steps(each: Candidate) -> Iterator[tuple[str, float, int]]:
    told = {"score": each.score, "calls": each.calls, "tokens": each.tokens, "prompt_tokens": each.prompt_tokens}
    yield from ((f"candidate.{name}", value, each.candidate) for name, value in told.items() if value is not None)


def _files(folder: Path) -> list[Path]:
    return [path for path in (*(folder / name for name in FILES), *sorted(folder.glob("*.png"))) if path.is_file()]


def _mlflow() -> tuple[Any, tuple[type[Exception], ...]]:
    """MLflow's client, and what it raises when a store cannot be used."""
    for name, value in MANNERS.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise MissingExtraError("logging a run to MLflow", "mlflow") from None
    return MlflowClient, (MlflowException, SQLAlchemyError, OSError)
