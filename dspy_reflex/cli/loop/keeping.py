"""`dspy-reflex prune`, `forget` and `history`."""

from __future__ import annotations

from pathlib import Path

import click

from dspy_reflex.cli.common import as_json, by_option, home_option, print_json, reason_option, shown


@click.command("prune")
@click.option("--days", type=click.IntRange(1), help="Keep so many days. Default: the setting retention_days.")
@by_option
@home_option
@as_json
def prune(days: int | None, by: str, home: Path | None, as_json: bool) -> None:
    """Remove old outcomes and what could not be read; counts stay, and failures that a rule was proposed for."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        gone = reflex.prune(days, by=by)
    if as_json:
        print_json({"removed": gone})
    else:
        click.echo(f"{gone:,} outcomes removed")


@click.command("forget")
@click.argument("failure_id")
@by_option
@reason_option
@home_option
@as_json
def forget(failure_id: str, by: str, reason: str, home: Path | None, as_json: bool) -> None:
    """Take a failure and all that was said of it out of the store for good; it is not taken in again."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        reflex.forget(failure_id, by=by, reason=reason)
    if as_json:
        print_json({"forgotten": failure_id})
    else:
        click.echo(f"{failure_id} is forgotten")


@click.command("history")
@click.argument("subject")
@home_option
@as_json
def history(subject: str, home: Path | None, as_json: bool) -> None:
    """Who did what to a proposal, a failure or, as `store`, to all of it."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        lines = reflex.history(subject)
    if as_json:
        print_json({"history": [line.model_dump(mode="json") for line in lines]})
        return
    for line in lines:
        moved = f" {line.before} -> {line.after}" if line.before else ""
        why = f": {shown(line.reason, 200)}" if line.reason else ""
        click.echo(f"{line.at:%Y-%m-%d %H:%M:%S}  {shown(line.actor)}  {line.action}{moved}{why}")
    if not lines:
        click.echo("nothing is known of it")
