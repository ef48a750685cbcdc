"""`dspy-reflex status`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import agent_options, agents_of, as_json, home_option, print_json, shown, since_option

if TYPE_CHECKING:
    from dspy_reflex.stages.overview.status import Status


@click.command("status")
@agent_options
@since_option
@home_option
@as_json
def command(agent: str | None, with_children: bool, since: datetime | None, home: Path | None, as_json: bool) -> None:
    """Show counts: outcomes, failures, causes, proposals, what could not be read, and what models cost today."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        found = reflex.status(since=since, agents=agents_of(reflex, agent, with_children=with_children))
    if as_json:
        print_json({"outcomes": found.outcomes, **asdict(found)})
        return
    for name, told in _lines(found):
        click.echo(f"{name:<12}{told}")


def _lines(found: Status) -> list[tuple[str, str]]:
    failed = sum(found.failures.values())
    share = f" ({failed / found.outcomes:.1%})" if found.outcomes else ""
    causes = {cause or "(no answer)": n for cause, n in found.causes.items()}
    return [
        ("outcomes", f"{found.outcomes:,}"),
        ("failures", f"{failed:,}{share}{_counts(found.failures)}"),
        ("causes", _counts(causes).removeprefix(": ") or "none"),
        ("undiagnosed", f"{found.undiagnosed:,}"),
        ("proposals", _counts(found.proposals).removeprefix(": ") or "none"),
        ("quarantine", f"{found.quarantined:,}" + (" (see `dspy-reflex doctor`)" if found.quarantined else "")),
        ("lost", f"{found.lost:,}"),
        ("cost today", f"{found.spent_today_usd:.4f} USD"),
    ]


def _counts(counts: dict[str, int]) -> str:
    """All counts, the largest first, behind a colon; empty if there are none."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ": " + ", ".join(f"{n:,} {shown(name)}" for name, n in ordered) if ordered else ""
