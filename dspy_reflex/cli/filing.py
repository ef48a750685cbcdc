"""What `dspy-reflex propose` does without a FILE: it works on the store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import agents_of, given, print_json
from dspy_reflex.cli.diagnosing import costs, stop_if_stopped
from dspy_reflex.cli.review.deciding import decided
from dspy_reflex.cli.review.printing import as_object, print_proposal
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.stages.proposing.filing import Proposed
    from dspy_reflex.stages.proposing.waiting import Skipped


def file_from_store(
    home: Path | None, path: Path | None, days: float, agent: str | None, *, with_children: bool, include_unsure: bool,
    auto: bool, concurrency: int, max_usd: float | None, as_json: bool,
) -> None:  # fmt: skip
    """File a rule for each cause and symptom that waits for one, and say which do not get any."""
    from dspy_reflex.api import Reflex

    with Reflex(home, base_dir=given("base_dir"), lm=given("lm")) as workspace:
        agents = agents_of(workspace, agent, with_children=with_children)
        done = workspace.propose(
            days=days, agents=agents, include_unsure=include_unsure, program=path, max_usd=max_usd,
            concurrency=concurrency,
        )  # fmt: skip
        _tell(done, days)
        decisions = decided(workspace) if auto else []
        filed = [workspace.proposal(one.id) for one in done.filed]
    if as_json:
        skipped = [asdict(one) for one in done.skipped]
        more = {"skipped": skipped, "unsure": done.unsure, "undiagnosed": done.undiagnosed}
        print_json(
            {
                "proposals": [as_object(one) for one in filed],
                **more,
                "decisions": [asdict(one) for one in decisions],
                **costs(done.batch),
            }
        )
    else:
        for one in filed:
            print_proposal(one)
    stop_if_stopped(done.batch)


def _tell(done: Proposed, days: float) -> None:
    """What got no rule, and why: one line each."""
    if done.warning:
        click.echo(f"warning: {done.warning}", err=True)
    for one in done.skipped:
        click.echo(_line(one), err=True)
    if done.unsure:
        click.echo(
            f"{done.unsure} failures with an unsure diagnosis do not count; --include-unsure counts them", err=True
        )
    if done.undiagnosed:
        click.echo(
            f"{done.undiagnosed} failures have no diagnosis yet; run `dspy-reflex diagnose --days {days:g}`", err=True
        )
    click.echo(f"{len(done.filed)} rules proposed", err=True)


def _line(one: Skipped) -> str:
    what = f"{one.root_cause}/{one.symptom} of {one.agent_id} ({one.failures} failures)"
    return neutralise(f"skipped: {what}: {one.why}").replace("\n", " ")
