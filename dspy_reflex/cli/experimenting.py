"""`dspy-reflex experiments`: what was compiled, with what, how well, and how two runs differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import FILE, as_json, need_compile, print_json, teller

if TYPE_CHECKING:
    from dspy_reflex.runs.folder import Run
    from dspy_reflex.runs.listing import Line

ROOT = Path("experiments")
"""Where `compile` puts runs by default."""
HEAD = ("run", "kind", "program", "optimizer", "model", "score", "n", "calls", "tokens", "USD", "finished", "partial")


@click.group("experiments")
def command() -> None:
    """List runs, show one as a report, compare two, and log them elsewhere. RUN is a folder, or its name below ./experiments."""


@command.command("list")
@click.argument("folder", type=FILE, default=ROOT)
@as_json
def list_experiments(folder: Path, as_json: bool) -> None:
    """List all runs below FOLDER (default: ./experiments): compiles, unfinished ones, and benchmarks."""
    from dspy_reflex.runs.listing import list_runs
    from dspy_reflex.runs.pages.terminal import console_for_stdout, table_of

    found = list_runs(folder)
    if as_json:
        print_json(found.to_json())
    else:
        rows = list(map(_cells, found.runs))
        told = [place for place in range(len(HEAD)) if any(row[place] for row in rows)]
        shown = (tuple(row[place] for place in told) for row in (HEAD, *rows))
        console_for_stdout().print(table_of(next(shown), tuple(shown)))
    say = teller()
    for sentence in found.damaged:
        say(f"warning: {sentence}")


def _cells(line: Line) -> tuple[str, ...]:
    score = "" if line.score is None else f"{line.metric} {line.score:.3f}"
    interval = f" [{line.interval[0]:.3f}, {line.interval[1]:.3f}]" if line.interval else ""
    counts = ("" if count is None else f"{count:,}" for count in (line.n, line.calls, line.tokens))
    usd = "" if line.usd is None else f"{line.usd:.4f}"
    asked = (line.run, line.kind, line.program, line.optimizer, line.model)
    return (*asked, score + interval, *counts, usd, line.finished or "", line.partial or "")


@command.command("show")
@click.argument("run", type=FILE)
@as_json
def show(run: Path, as_json: bool) -> None:
    """Show the report of RUN, and where it is as a web page; the page is written if it is missing."""
    need_compile("experiments show")
    from dspy_reflex.runs.document import run_document
    from dspy_reflex.runs.pages import terminal
    from dspy_reflex.runs.report import HTML, run_json, write_run_report

    found = _read(run)
    page = found.folder / HTML
    if not page.is_file():
        write_run_report(found.folder)
    if as_json:
        print_json({**run_json(found), "report": str(page)})
        return
    terminal.show(run_document(found))
    click.echo(f"\nwith pictures: {page}")


@command.command("compare")
@click.argument("first", metavar="A", type=FILE)
@click.argument("second", metavar="B", type=FILE)
@as_json
def compare_experiments(first: Path, second: Path, as_json: bool) -> None:
    """Hold run B against run A: options, scores on the rows that both answered, instruction, demos, cost."""
    need_compile("experiments compare")
    from dspy_reflex.runs.compare import compare, comparison_document
    from dspy_reflex.runs.pages import terminal

    found = compare(_read(first), _read(second))
    if as_json:
        print_json(found.to_json())
    else:
        terminal.show(comparison_document(found))


@command.command("log")
@click.argument("run", type=FILE)
@click.option("--mlflow", "uri", required=True, help="Tracking address: sqlite:///mlflow.db, http://127.0.0.1:5000.")
@click.option("--experiment", default="dspy-reflex", show_default=True, help="MLflow experiment; made if need be.")
@as_json
def log(run: Path, uri: str, experiment: str, as_json: bool) -> None:
    """Log RUN to MLflow: options, scores, candidates, cost, and its files. Needs the extra [mlflow]."""
    need_compile("experiments log")
    from dspy_reflex.runs.tracking import log_run

    found = _read(run)
    logged = log_run(found, uri, experiment)
    if as_json:
        print_json({"run": str(found.folder), "mlflow_run": logged, "tracking_uri": uri})
    else:
        click.echo(f"{found.folder} logged to {uri} as {logged}")


def _read(run: Path) -> Run:
    """A run by its folder, or by its name below ./experiments."""
    from dspy_reflex.runs.folder import read_run

    return read_run(run if run.is_dir() else ROOT / run)
