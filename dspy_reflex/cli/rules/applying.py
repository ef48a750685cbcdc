"""`dspy-reflex apply` and `diff`."""

from __future__ import annotations

from pathlib import Path

import click

from dspy_reflex.cli.common import as_json, by_option, home_option, print_json
from dspy_reflex.cli.review.printing import print_lines
from dspy_reflex.cli.rules.printing import as_object, hand_edits_shown, print_patches, say_recovered
from dspy_reflex.untrusted import neutralise


@click.command("apply")
@click.argument("proposal_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Everything that is approved.")
@click.option("--dry-run", is_flag=True, help="Show the diff and write nothing.")
@by_option
@home_option
@as_json
def apply(
    proposal_ids: tuple[str, ...], every: bool, dry_run: bool, by: str, home: Path | None, as_json: bool
) -> None:  # fmt: skip
    """Write the approved rules ID into the agent's rule files: all of them, or none.

    Only the block between our two markers changes. It must be as it was last written.
    """
    from dspy_reflex.api import Reflex

    if every == bool(proposal_ids):
        raise click.UsageError("give IDs of proposals, or --all")
    with Reflex(home) as workspace, hand_edits_shown():
        done = workspace.apply(proposal_ids or None, by=by, dry_run=dry_run)
    say_recovered(workspace.recovered)
    if as_json:
        print_json({**as_object(done), "already": [one.id for one in done.already]})
        return
    print_patches(done, dry_run=dry_run)
    for one in done.already:
        click.echo(neutralise(f"{one.id} is in {one.file} already"))
    if not done.patches and not done.already:
        click.echo("nothing is approved", err=True)


@click.command("diff")
@home_option
@as_json
def diff(home: Path | None, as_json: bool) -> None:
    """Show what `apply --all` would change, as a unified diff."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace, hand_edits_shown():
        found = workspace.diff()
    say_recovered(workspace.recovered)
    if as_json:
        print_json({"diff": found})
    else:
        print_lines(neutralise(found))
