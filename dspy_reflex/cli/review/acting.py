"""`dspy-reflex review approve`, `edit`, `reject` and `defer`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    EXIT_STOPPED,
    FILE,
    agent_options,
    agents_of,
    as_json,
    by_option,
    home_option,
    print_json,
    reason_option,
)  # fmt: skip
from dspy_reflex.errors import ReviewError
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.api import Reflex
    from dspy_reflex.records.review import FiledProposal

correction_option = click.option(
    "--correction", type=FILE, help="File with what the agent should have done, JSON or text; training rows need it."
)
id_argument = click.argument("proposal_id", metavar="ID")


@click.command("approve")
@click.argument("proposal_id", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="Approve every pending one that the filters leave.")
@click.option("--cause", help="With --all: only against this root cause.")
@click.option(
    "--component", type=click.Choice(["SOUL", "AGENTS", "TOOLS"]), help="With --all: only for this component."
)
@agent_options
@click.option("--yes", is_flag=True, help="With --all: do it.")
@correction_option
@by_option
@reason_option
@home_option
@as_json
def approve(
    proposal_id: str | None, every: bool, cause: str | None, component: str | None, agent: str | None,
    with_children: bool, yes: bool, correction: Path | None, by: str, reason: str, home: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Approve the rule ID as it stands, or with --all every one that the filters leave.

    What is approved is the rule, its file, and that file as it is now.
    """
    from dspy_reflex.api import Reflex

    if every == (proposal_id is not None):
        raise click.UsageError("give the ID of a proposal, or --all")
    if not every and (cause or component or agent or with_children or yes):
        raise click.UsageError("--cause, --component, --agent, --with-children and --yes go with --all")
    if every and correction:
        raise click.UsageError("--correction goes with one ID: it is what one agent should have done")
    with Reflex(home) as workspace:
        if proposal_id is not None:
            _say([workspace.approve(proposal_id, by=by, reason=reason, correction=_read(correction))], as_json=as_json)
            return
        agents = agents_of(workspace, agent, with_children=with_children)
        found = [
            one
            for one in workspace.proposals("pending", agents=agents)
            if cause in (None, one.proposal.root_cause) and component in (None, one.proposal.component)
        ]
        _approve_all(workspace, found, by, reason, yes=yes, as_json=as_json)


@click.command("edit")
@id_argument
@click.option("--rule", help="The rule in your words.")
@click.option("--editor", is_flag=True, help="Write it in your editor.")
@correction_option
@by_option
@reason_option
@home_option
@as_json
def edit(
    proposal_id: str, rule: str | None, editor: bool, correction: Path | None, by: str, reason: str,
    home: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Approve other words for the rule ID."""
    from dspy_reflex.api import Reflex

    if editor == (rule is not None):
        raise click.UsageError("give --rule TEXT or --editor")
    with Reflex(home) as workspace:
        shown = workspace.proposal(proposal_id)
        words = rule if rule is not None else rewritten(shown.proposal.rule)
        base = shown.preview.base if shown.preview else None
        done = workspace.edit(shown.proposal.id, words, by=by, reason=reason, correction=_read(correction), base=base)
    _say([done], as_json=as_json)


@click.command("reject")
@id_argument
@click.option("--reason", required=True, help="Why: the next proposal learns from it.")
@by_option
@home_option
@as_json
def reject(proposal_id: str, reason: str, by: str, home: Path | None, as_json: bool) -> None:
    """Reject the rule ID; the like of it is not proposed again. An approval can be taken back until it is applied."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        _say([workspace.reject(proposal_id, by=by, reason=reason)], as_json=as_json)


@click.command("defer")
@id_argument
@by_option
@reason_option
@home_option
@as_json
def defer(proposal_id: str, by: str, reason: str, home: Path | None, as_json: bool) -> None:
    """Leave the rule ID for later: it is no longer pending, and not proposed again."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        _say([workspace.defer(proposal_id, by=by, reason=reason)], as_json=as_json)


def rewritten(rule: str) -> str:
    """What somebody makes of a rule in their editor.

    Raises:
        ReviewError: They left without saving.
    """
    words = click.edit(neutralise(rule), extension=".txt")
    if words is None:
        raise ReviewError("the editor was left without saving, so nothing was approved")
    return words


def _approve_all(
    workspace: Reflex, found: list[FiledProposal], by: str, reason: str, *, yes: bool, as_json: bool
) -> None:
    """Approve many, if somebody really wants to."""
    if not yes:
        raise ReviewError(f"this would approve {len(found)} rules; look at them with `review`, then add --yes")
    done = workspace.approve_all([one.id for one in found], by=by, reason=reason)
    for one, why in done.refused:
        click.echo(neutralise(f"not approved: {one.id}: {why}"), err=True)
    _say(list(done.approved), as_json=as_json, refused=[{"id": one.id, "why": why} for one, why in done.refused])
    if done.refused:
        raise SystemExit(EXIT_STOPPED)


def _say(done: list[FiledProposal], *, as_json: bool, **more: Any) -> None:
    if as_json:
        print_json({"proposals": [one.model_dump(mode="json") for one in done], **more})
        return
    for one in done:
        click.echo(neutralise(f"{one.id} is {one.state}: {one.rule}"))


def _read(correction: Path | None) -> Any:
    """What the agent should have done: the JSON value of a file, or its text.

    Raises:
        ReviewError: It cannot be read or kept, or there is nothing in it.
    """
    from dspy_reflex.store.text import unstorable

    if correction is None:
        return None
    try:
        text = correction.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ReviewError(f"{correction}: cannot be read: {error}") from error
    if not text:
        raise ReviewError(f"{correction}: the file is empty; write what the agent should have done")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if why := unstorable(value):
        raise ReviewError(f"{correction}: {why}")
    return value
