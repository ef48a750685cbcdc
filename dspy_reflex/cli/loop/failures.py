"""`dspy-reflex failures`: look at what was recorded, and move it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import click

from dspy_reflex.cli.common import (
    FILE,
    agent_options,
    agents_of,
    as_json,
    home_option,
    print_json,
    shown,
    since_option,
)  # fmt: skip
from dspy_reflex.errors import EXIT_BAD_INPUT
from dspy_reflex.stages.recording.log import SEVERITIES
from dspy_reflex.untrusted import as_text, neutralise

if TYPE_CHECKING:
    from dspy_reflex.stages.overview.failures import Listed, Shown

F = TypeVar("F", bound=Callable[..., Any])


@click.group("failures")
def command() -> None:
    """List, show, search, import and export recorded failures."""


def _filters(function: F) -> F:
    """The options that say which failures are meant."""
    options = (
        agent_options,
        click.option("--cause", help="Only this root cause."),
        click.option("--severity", type=click.Choice(SEVERITIES), help="Only of this severity."),
        since_option,
        home_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


_limit = click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Most that are shown.")


@command.command("list")
@_filters
@_limit
@as_json
def list_(
    agent: str | None, with_children: bool, cause: str | None, severity: str | None, since: datetime | None,
    home: Path | None, limit: int, as_json: bool,
) -> None:  # fmt: skip
    """The newest failures."""
    wanted = {"cause": cause, "severity": severity, "since": since, "limit": limit}
    _list(home, agent, with_children, wanted, as_json=as_json)


@command.command("search")
@click.argument("text")
@_filters
@_limit
@as_json
def search(
    text: str, agent: str | None, with_children: bool, cause: str | None, severity: str | None, since: datetime | None,
    home: Path | None, limit: int, as_json: bool,
) -> None:  # fmt: skip
    """Failures with TEXT in their task or outcome, in any case."""
    wanted = {"cause": cause, "severity": severity, "since": since, "text": text, "limit": limit}
    _list(home, agent, with_children, wanted, as_json=as_json)


@command.command("show")
@click.argument("failure_id")
@home_option
@as_json
def show(failure_id: str, home: Path | None, as_json: bool) -> None:
    """Everything about one failure: its text, its diagnosis, the rules it stands behind."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        found = reflex.failure(failure_id)
    if as_json:
        rules = [one.model_dump(mode="json") for one in found.proposals]
        print_json({**_told(found), "proposals": rules})
    else:
        _show(found)


@command.command("import")
@click.argument("file", type=FILE)
@home_option
@as_json
def import_(file: Path, home: Path | None, as_json: bool) -> None:
    """Take in FILE (JSON Lines, REFLEX's or our own; - for stdin), redacted. Given again, it changes nothing."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex, cast("BinaryIO", click.open_file(str(file), "rb")) as stream:
        found = reflex.import_failures(stream, "<stdin>" if str(file) == "-" else file.name)
    for line in found.bad:
        click.echo(f"error: {shown(file, 200)}:{line.number}: {shown(line.reason, 200)}", err=True)
    if as_json:
        bad = [{"line": line.number, "reason": line.reason} for line in found.bad]
        print_json({"new": found.new, "known": found.known, "bad": bad})
    else:
        click.echo(f"{found.new} new, {found.known} known already, {len(found.bad)} lines that cannot be used")
    if found.bad:
        raise SystemExit(EXIT_BAD_INPUT)


@command.command("export")
@_filters
@click.option("--out", type=FILE, help="File to write. Default: stdout.")
def export(
    agent: str | None, with_children: bool, cause: str | None, severity: str | None, since: datetime | None,
    home: Path | None, out: Path | None,
) -> None:  # fmt: skip
    """Failures as JSON Lines with REFLEX's keys and their diagnoses, newest first."""
    from dspy_reflex.api import Reflex
    from dspy_reflex.files import write_atomic

    with Reflex(home) as reflex:
        agents = agents_of(reflex, agent, with_children=with_children)
        lines = reflex.export_failures(agents=agents, cause=cause, severity=severity, since=since)
        if out:
            write_atomic(out, b"".join(lines))
        else:
            sys.stdout.buffer.writelines(lines)
            sys.stdout.flush()


def _list(
    home: Path | None, agent: str | None, with_children: bool, wanted: dict[str, Any], *, as_json: bool
) -> None:  # fmt: skip
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        found = reflex.failures(agents=agents_of(reflex, agent, with_children=with_children), **wanted)
    if as_json:
        print_json({"failures": [_told(one) for one in found]})
    elif found:
        click.echo("\n".join(_lines(found)))
    else:
        click.echo("no failure is like that")


def _told(one: Listed) -> dict[str, Any]:
    said = one.diagnosis.model_dump(mode="json") if one.diagnosis else None
    return {**one.failure.model_dump(mode="json"), "diagnosis": said}


def _lines(found: tuple[Listed, ...]) -> Iterator[str]:
    """A line for each, its id whole, so that it can be shown next."""
    for one in found:
        failure, cause = one.failure, (one.diagnosis.root_cause or "(no answer)") if one.diagnosis else "-"
        when, agent = f"{failure.at:%Y-%m-%d %H:%M}", shown(failure.agent_id, 30)
        yield f"{shown(failure.id, 64)}  {when}  {failure.severity:<8}  {cause:<21}  {agent}: {shown(failure.actual_outcome)}"


def _show(found: Shown) -> None:
    failure, said = found.failure, found.diagnosis
    works_for = f", works for {failure.parent_agent_id}" if failure.parent_agent_id else ""
    _field("failure", f"{failure.id}, {failure.severity}, {failure.at:%Y-%m-%d %H:%M:%S} UTC")
    _field("agent", failure.agent_id + works_for)
    _field("task", failure.task)
    _field("expected", failure.expected_outcome)
    _field("outcome", failure.actual_outcome)
    _field("context", as_text(failure.context))
    _field("redacted", ", ".join(f"{n} {kind}" for kind, n in failure.redacted.items()))
    if said is None:
        _field("diagnosis", "none yet; run `dspy-reflex diagnose`")
    else:
        by = f"by {said.program} on {said.model}; {said.score}"
        _field("diagnosis", f"{said.root_cause or 'no answer'} ({said.confidence:.0%}), {said.symptom}\n{by}")
        _field("review", said.review_reason)
        _field("because", said.reasoning)
        _field("evidence", "\n".join(said.evidence))
    for rule in found.proposals:
        _field("rule", f"{rule.id}, {rule.state}, {rule.proposal.component}\n{rule.rule}")


def _field(name: str, text: str | None) -> None:
    """One field and its text, safe to show; nothing if it is empty."""
    if text:
        first, *others = neutralise(text).split("\n")
        click.echo("\n".join([f"{name:<11}{first}", *(f"{'':<11}{line}" for line in others)]))
