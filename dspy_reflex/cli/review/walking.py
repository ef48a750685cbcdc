"""`dspy-reflex review walk`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import agent_options, agents_of, as_json, by_option, home_option, print_json
from dspy_reflex.cli.keys import ask, need_terminal, say
from dspy_reflex.cli.review.acting import rewritten
from dspy_reflex.cli.review.printing import evidence_of, lines_of, print_diff
from dspy_reflex.errors import ReviewError, StoreError, TargetError
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.api import Reflex
    from dspy_reflex.stages.reviewing.listing import Shown

KEYS = {"a": "approve", "e": "edit", "r": "reject", "d": "defer", "s": "skip", "q": "quit"}
DONE = {"a": "approved", "e": "edited", "r": "rejected", "d": "deferred", "s": "skipped"}


@click.command("walk")
@agent_options
@by_option
@home_option
@as_json
def command(agent: str | None, with_children: bool, by: str, home: Path | None, as_json: bool) -> None:
    """Go through all pending proposals: the rule, the failures behind it, the diff; one key each.

    What is approved is the file as it was shown. Every answer is kept at once; quit and start again at any time.
    """
    need_terminal("review walk")
    from dspy_reflex.api import Reflex

    done: Counter[str] = Counter()
    with Reflex(home) as workspace:
        agents = agents_of(workspace, agent, with_children=with_children)
        pending = [one.id for one in workspace.proposals("pending", agents=agents)]
        for number, proposal_id in enumerate(pending, start=1):
            key = _asked(workspace, proposal_id, f"{number}/{len(pending)}", by)
            if key == "q":
                break
            done[DONE[key]] += 1
        left = len(workspace.proposals("pending", agents=agents))
    if as_json:
        print_json({**{name: done[name] for name in DONE.values()}, "pending": left})
    else:
        click.echo(", ".join([*(f"{n} {name}" for name, n in done.items()), f"{left} pending"]))


def _asked(workspace: Reflex, proposal_id: str, heading: str, by: str) -> str:
    """Show one and ask until an answer can be kept; the key is returned."""
    while True:
        shown = workspace.proposal(proposal_id)
        say(f"\n{heading}")
        for line in (*lines_of(shown.proposal), "", *evidence_of(shown), ""):
            say(line)
        print_diff(shown, stderr=True)
        key = ask("\nthis rule", KEYS)
        try:
            _act(workspace, shown, key, by)
        except (ReviewError, StoreError, TargetError) as error:
            say(neutralise(f"  {error}"))
            if workspace.proposal(proposal_id).proposal.state != "pending":
                return "s"
        else:
            return key


def _act(workspace: Reflex, shown: Shown, key: str, by: str) -> None:
    proposal, base = shown.proposal, shown.preview.base if shown.preview else None
    if key == "a":
        workspace.approve(proposal.id, by=by, base=base)
    elif key == "e":
        words = rewritten(proposal.rule)
        workspace.edit(proposal.id, words, by=by, base=base)
    elif key == "r":
        workspace.reject(proposal.id, by=by, reason=_why())
    elif key == "d":
        workspace.defer(proposal.id, by=by)


def _why() -> str:
    return click.prompt("why", default="", show_default=False, err=True)
