"""`dspy-reflex review list` and `show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from dspy_reflex.cli.common import agent_options, agents_of, as_json, home_option, print_json
from dspy_reflex.cli.review.printing import as_object, evidence_of, lines_of, print_diff, said_of
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.review import FiledProposal

STATES = ("pending", "deferred", "approved", "rejected", "applied", "kept", "reverted")
ANY = "any"


@click.command("list")
@click.option("--status", type=click.Choice([*STATES, ANY]), default="pending", show_default=True, help="Which ones.")
@agent_options
@home_option
@as_json
def listed(status: str, agent: str | None, with_children: bool, home: Path | None, as_json: bool) -> None:
    """List proposals, oldest first."""
    from dspy_reflex.api import Reflex
    from dspy_reflex.records.review import State

    states: tuple[State, ...] = tuple(one for one in get_args(State) if status in (one, ANY))
    with Reflex(home) as workspace:
        agents = agents_of(workspace, agent, with_children=with_children)
        found = workspace.proposals(*states, agents=agents)
    if as_json:
        print_json({"proposals": [one.model_dump(mode="json") for one in found]})
    else:
        _print(found, status)


@click.command("show")
@click.argument("proposal_id", metavar="ID")
@home_option
@as_json
def shown(proposal_id: str, home: Path | None, as_json: bool) -> None:
    """Show a proposal; the beginning of its ID is enough."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        found = workspace.proposal(proposal_id)
    if as_json:
        print_json(as_object(found))
        return
    for line in (*lines_of(found.proposal), "", *evidence_of(found), *map(said_of, found.reviews), ""):
        click.echo(line)
    print_diff(found)


def _print(found: list[FiledProposal], status: str) -> None:
    for one in found:
        program = one.proposal
        what = f"{program.root_cause}/{one.symptom}  {one.severity}  {len(program.failure_ids)} failures"
        click.echo(neutralise(f"{one.id}  {one.state}  {program.component}  {what}\n  {one.rule}"))
    if not found:
        click.echo("no proposals" if status == ANY else f"no {status} proposals", err=True)
