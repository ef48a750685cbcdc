"""`dspy-reflex rules`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import agent_options, agents_of, as_json, by_option, home_option, print_json
from dspy_reflex.cli.rules.printing import as_object, hand_edits_shown, print_patches, say_recovered
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.stages.patching.standing import Rule


@click.group()
def command() -> None:
    """The rules that are in files."""


@command.command("list")
@agent_options
@home_option
@as_json
def listed(agent: str | None, with_children: bool, home: Path | None, as_json: bool) -> None:
    """List the rules in files, oldest first, with what came of them since."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        found = workspace.rules(agents_of(workspace, agent, with_children=with_children))
    if as_json:
        print_json({"rules": [_object(one) for one in found]})
        return
    for one in found:
        program = one.proposal.proposal
        what = f"since {one.since:%Y-%m-%d}  {len(program.failure_ids)} failures before, {one.recurred} like them since"
        click.echo(
            neutralise(f"{one.proposal.id}  {one.proposal.state}  {what}\n  {one.proposal.rule}\n  {one.proposal.file}")
        )
    if not found:
        click.echo("no rules are in files", err=True)


@command.command("retire")
@click.argument("proposal_id", metavar="ID")
@click.option("--reason", required=True, help="Why it is no longer needed.")
@by_option
@home_option
@as_json
def retire(proposal_id: str, reason: str, by: str, home: Path | None, as_json: bool) -> None:
    """Take the rule ID out of its file. Should its failures come back, it may be proposed again."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace, hand_edits_shown():
        done = workspace.retire(proposal_id, by=by, reason=reason)
    say_recovered(workspace.recovered)
    if as_json:
        print_json(as_object(done))
        return
    print_patches(done, dry_run=False)
    if not done.patches:
        click.echo("it is out already", err=True)


@command.command("merge")
@click.argument("first_id", metavar="ID")
@click.argument("second_id", metavar="ID")
@click.option("--rule", required=True, help="The one rule that takes their place.")
@by_option
@home_option
@as_json
def merge(first_id: str, second_id: str, rule: str, by: str, home: Path | None, as_json: bool) -> None:
    """Propose one rule in place of two. They go out as it comes in, once it is reviewed and applied."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        made = workspace.merge(first_id, second_id, rule, by=by)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        click.echo(neutralise(f"{made.id} is {made.state}: {made.rule}"))


def _object(one: Rule) -> dict[str, Any]:
    return {**one.proposal.model_dump(mode="json"), "since": one.since.isoformat(), "recurred": one.recurred}
