"""`dspy-reflex verify`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import as_json, by_option, home_option, print_json
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.verdict import Side, Verdict
    from dspy_reflex.stages.verifying.verify import Checked

AGAIN = (
    "looked at {looks} times: a verdict on one look errs in 1 of 20 rules that change nothing, on many looks more often"
)


@click.command("verify")
@click.argument("proposal_id", metavar="[ID]", required=False)
@click.option("--days", type=click.IntRange(1), default=28, show_default=True, help="Longest time on either side.")
@click.option("--keep", is_flag=True, help="Keep the rules that helped for good.")
@by_option
@home_option
@as_json
def command(proposal_id: str | None, days: int, keep: bool, by: str, home: Path | None, as_json: bool) -> None:
    """See whether the rule ID, or every rule in a file, helped.

    The failures that it is against are counted per 1,000 outcomes, as long before it as after, with 95 % intervals.
    """
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        found = workspace.verify(proposal_id, days=days, keep_by=by if keep else None)
    if as_json:
        print_json(
            {"verdicts": [{**one.verdict.model_dump(mode="json"), "state": one.proposal.state} for one in found]}
        )
        return
    for one in found:
        for line in _lines(one):
            click.echo(neutralise(line))
    if not found:
        click.echo("no rules are in files", err=True)


def _lines(one: Checked) -> list[str]:
    said = one.verdict
    told = [
        f"{one.proposal.id}  {one.proposal.state}  {said.verdict}",
        f"  {one.proposal.rule}",
        f"  {_span(said.until - said.applied_at)} before and after {said.applied_at:%Y-%m-%d %H:%M} UTC",
        f"  before {_rate(said.before)}",
        f"  after  {_rate(said.after)}",
        f"  change {said.change_low:+.1f} to {said.change_high:+.1f}, p = {said.p_value:.2g}",
    ]
    return told + [f"  {each}" for each in _remarks(said)]


def _rate(side: Side) -> str:
    return (
        f"{side.per_1000:.1f} per 1,000 [{side.low:.1f}, {side.high:.1f}], "
        f"{side.failures:,} of {side.outcomes:,} outcomes"
    )


def _span(length: timedelta) -> str:
    for name, unit in (("days", timedelta(days=1)), ("hours", timedelta(hours=1))):
        if length >= unit:
            return f"{length / unit:.1f} {name}"
    return f"{length / timedelta(minutes=1):.1f} minutes"


def _remarks(said: Verdict) -> list[str]:
    """What is to be known with the numbers."""
    told: list[str] = []
    if said.more_outcomes is not None:
        told.append(f"about {said.more_outcomes:,} more outcomes would show whether it ends these failures")
    elif said.verdict == "too few":
        told.append(
            "nothing was recorded in that time before it; the longer the rule stands, the further back is looked"
        )
    if said.burst > 1:
        told.append(f"failures come in bursts: {said.burst:.1f} count as one")
    if unknown := said.before.undiagnosed + said.after.undiagnosed:
        told.append(f"{unknown:,} failures are not diagnosed and count against any verdict; run `dspy-reflex diagnose`")
    return told + ([AGAIN.format(looks=said.look)] if said.look > 1 else [])
