"""`dspy-reflex log`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import EXIT_STOPPED, as_json, home_option, print_json, shown
from dspy_reflex.errors import EXIT_BAD_INPUT
from dspy_reflex.stages.recording.log import SEVERITIES

if TYPE_CHECKING:
    from dspy_reflex.recorder.recorder import Recorder


def _json(_: click.Context, __: click.Parameter, value: str | None) -> Any:
    try:
        return None if value is None else json.loads(value)
    except (ValueError, RecursionError):
        raise click.BadParameter('give JSON, such as \'{"tool": "telegram"}\'') from None


@click.command("log")
@click.option("--agent", help="Who failed.")
@click.option("--task", help="What it was asked to do.")
@click.option("--expected", help="What should have come out.")
@click.option("--actual", help="What came out.")
@click.option("--severity", type=click.Choice(SEVERITIES), default="medium", show_default=True, help="How bad it was.")
@click.option("--context", callback=_json, help="Whatever else there is, as JSON.")
@click.option("--parent", help="The agent that it works for.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Take JSON Lines from stdin, REFLEX's or our own.")
@home_option
@as_json
def command(
    agent: str | None, task: str | None, expected: str | None, actual: str | None, severity: str, context: Any,
    parent: str | None, from_stdin: bool, home: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Record a failure; prints its id. Secrets are taken out before it is written."""
    from dspy_reflex.api import Reflex

    said = {"--agent": agent, "--task": task, "--actual": actual}
    if not from_stdin and (missing := [name for name, value in said.items() if not value]):
        raise click.UsageError(f"{', '.join(missing)}: required, unless --stdin brings failures")
    if from_stdin and any((*said.values(), expected, context, parent)):
        raise click.UsageError("--stdin brings everything itself; leave the other options out")
    with Reflex(home) as reflex:
        if from_stdin:
            ids, bad = _record_lines(reflex.recorder)
        else:
            ids, bad = [reflex.log(agent or "", task or "", expected, actual, severity, context, parent)], []
        reflex.recorder.flush()
        _tell(ids, bad, reflex.recorder, as_json=as_json)


def _record_lines(recorder: Recorder) -> tuple[list[str], list[dict[str, Any]]]:
    """Ids of the lines that are events, and what is wrong with the others."""
    from dspy_reflex.stages.recording.lines import BadLine, read_lines

    ids: list[str] = []
    bad: list[dict[str, Any]] = []
    for line in read_lines(sys.stdin.buffer):
        if isinstance(line, BadLine):
            bad.append({"line": line.number, "reason": line.reason})
            click.echo(f"error: <stdin>:{line.number}: {shown(line.reason, 200)}", err=True)
        else:
            ids.append(recorder.record(line.event))
    return ids, bad


def _tell(ids: list[str], bad: list[dict[str, Any]], recorder: Recorder, *, as_json: bool) -> None:
    if as_json:
        print_json({"ids": ids, "bad": bad, "lost": recorder.lost, "why": recorder.why})
    elif not recorder.lost:
        click.echo("\n".join(ids), nl=bool(ids))
    if recorder.lost:
        click.echo(f"error: {recorder.lost} of {len(ids)} could not be written: {shown(recorder.why, 200)}", err=True)
    if bad or recorder.lost:
        raise SystemExit(EXIT_BAD_INPUT if bad else EXIT_STOPPED)
