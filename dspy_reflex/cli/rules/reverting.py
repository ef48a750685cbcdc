"""`dspy-reflex revert`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from dspy_reflex.cli.common import Moment, as_json, by_option, home_option, print_json
from dspy_reflex.cli.rules.printing import as_object, hand_edits_shown, print_patches, say_recovered


@click.command("revert")
@click.argument("undone_id", metavar="[ID]", required=False)
@click.option("--to", "until", type=Moment(), help="Bring all rule files back to this day or time; UTC.")
@click.option("--reason", required=True, help="Why: the next proposal learns from it.")
@click.option("--dry-run", is_flag=True, help="Show the diff and write nothing.")
@by_option
@home_option
@as_json
def command(
    undone_id: str | None, until: datetime | None, reason: str, dry_run: bool, by: str, home: Path | None, as_json: bool
) -> None:  # fmt: skip
    """Undo the patch ID, or the one that put the rule of the proposal ID into its file; to the byte.

    What a patch took out, as a merge does, comes back with it. What is reverted is not proposed again.
    """
    from dspy_reflex.api import Reflex

    undone = undone_id if until is None else until
    if undone is None or (undone_id and until):
        raise click.UsageError("give the ID of a proposal or patch, or --to")
    with Reflex(home) as workspace, hand_edits_shown():
        done = workspace.revert(undone, by=by, reason=reason, dry_run=dry_run)
    say_recovered(workspace.recovered)
    if as_json:
        print_json(as_object(done))
        return
    print_patches(done, dry_run=dry_run)
    if not done.patches:
        click.echo("there is nothing to undo: it was undone before", err=True)
