"""What many outcomes say, from the counts by day: no view reads the outcomes themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Table, func, select

from dspy_reflex.clock import day_of
from dspy_reflex.store.outcomes import LOST, OK
from dspy_reflex.store.schema import daily_causes, daily_outcomes, proposals, quarantine


@dataclass(frozen=True)
class Counts:
    """Of the days asked for."""

    good: int
    failures: dict[str, int]
    """By severity."""
    causes: dict[str, int]
    """Diagnosed failures by root cause; empty for those that got none."""
    undiagnosed: int
    lost: int
    """Events that recorders could not write; of which agents is not known."""


def count(connection: Connection, *, since: datetime | None = None, agents: Sequence[str] | None = None) -> Counts:
    """Outcomes and causes of whole days."""
    outcomes = _summed(connection, daily_outcomes, "severity", since, agents)
    causes = _summed(connection, daily_causes, "root_cause", since, agents)
    good, lost = outcomes.pop(OK, 0), outcomes.pop(LOST, 0)
    return Counts(good, outcomes, causes, sum(outcomes.values()) - sum(causes.values()), lost)


def by_state(connection: Connection) -> dict[str, int]:
    """How many proposals are in each state."""
    rows = connection.execute(select(proposals.c.state, func.count().label("n")).group_by(proposals.c.state))
    return {row.state: int(row.n) for row in rows}


def quarantined(connection: Connection) -> int:
    """How much could not be read."""
    return connection.scalar(select(func.count()).select_from(quarantine)) or 0


def _summed(
    connection: Connection, table: Table, what: str, since: datetime | None, agents: Sequence[str] | None
) -> dict[str, int]:
    wanted = select(table.c[what], func.sum(table.c.n)).group_by(table.c[what])
    if since is not None:
        wanted = wanted.where(table.c.day >= day_of(since))
    if agents is not None:
        wanted = wanted.where(table.c.agent_id.in_(agents))
    return {key: int(n) for key, n in connection.execute(wanted) if n}
