"""Outcomes: take them in with their counts, and find failures again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, false, func, or_, select

from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.store.rows import told
from dspy_reflex.store.schema import agents, daily_outcomes, diagnoses, moment, outcomes, pruned, tombstones
from dspy_reflex.store.upsert import add_up, insert_new, put

OK = "ok"
"""Severity under which good outcomes are counted."""
LOST = "lost"
"""Severity under which events are counted that a recorder could not write, of no agent."""
IDS_AT_ONCE = 500
_DAY_US = 86_400_000_000
_FAILURE_FIELDS = ("task", "expected_outcome", "actual_outcome", "severity", "context", "redacted")

Event = Mapping[str, Any]
"""An outcome as the recorder writes it: `at` in microseconds since 1970, the other fields as in `outcomes`."""


@dataclass(frozen=True)
class Query:
    """Which failures are wanted; what is not said does not matter."""

    agents: tuple[str, ...] | None = None
    """Ids of agents; None is all."""
    cause: str | None = None
    """Current root cause."""
    severity: str | None = None
    since: datetime | None = None
    text: str | None = None
    """Words that occur in task or outcome, in this order and in any case."""
    behind: tuple[datetime, str] | None = None
    """Time and id of the failure that they are listed behind."""
    limit: int | None = None


def take_in(connection: Connection, events: Iterable[Event]) -> int:
    """Insert outcomes that are not there yet, were not forgotten and did not grow old, and count them by day.

    Returns:
        How many were new.
    """
    found = {str(event["id"]): event for event in events}
    known = _known(connection, list(found))
    new = [event for key, event in found.items() if key not in known]
    insert_new(connection, outcomes, [*map(_row, new)])
    _count(connection, new)
    _hear_of(connection, new)
    return len(new)


def count_lost(connection: Connection, told: Iterable[Mapping[str, int]]) -> None:
    """Count events that were lost, by the day on which it was told: `lost` events, `at` that time."""
    counts = Counter[int]()
    for one in told:
        counts[one["at"] // _DAY_US] += one["lost"]
    rows = [{"day": day, "agent_id": "", "severity": LOST, "n": n} for day, n in sorted(counts.items())]
    add_up(connection, daily_outcomes, rows)


def failure(connection: Connection, failure_id: str) -> LoggedFailure | None:
    """One failure; None if there is none of that id."""
    found = connection.execute(_failures().where(outcomes.c.id == failure_id)).first()
    return _failure(found) if found else None


def failures(connection: Connection, query: Query) -> list[LoggedFailure]:
    """Failures, newest first."""
    wanted = _failures().where(*_conditions(query)).order_by(outcomes.c.at.desc(), outcomes.c.id.desc())
    return [_failure(row) for row in connection.execute(wanted.limit(query.limit))]


def failures_of(connection: Connection, ids: Sequence[str]) -> list[LoggedFailure]:
    """The failures of these ids that are there, in the order given."""
    found: dict[str, LoggedFailure] = {}
    for start in range(0, len(ids), IDS_AT_ONCE):
        rows = connection.execute(_OF_IDS, {"ids": ids[start : start + IDS_AT_ONCE]})
        found.update((one.id, one) for one in map(_failure, rows))
    return [found[one] for one in ids if one in found]


def family(connection: Connection, agent_id: str) -> tuple[str, ...]:
    """An agent and all that work for it, directly or not."""
    rows = connection.execute(select(agents.c.agent_id, agents.c.parent_agent_id)).all()
    members, seen = [agent_id], {agent_id}
    for member in members:
        below = [row.agent_id for row in rows if row.parent_agent_id == member and row.agent_id not in seen]
        members.extend(below)
        seen.update(below)
    return tuple(members)


def parents(connection: Connection) -> dict[str, str]:
    """Agent to the agent that it works for."""
    rows = connection.execute(select(agents).where(agents.c.parent_agent_id.is_not(None)))
    return {row.agent_id: row.parent_agent_id for row in rows}


def everybody(connection: Connection) -> list[str]:
    """Every agent that was heard of."""
    return list(connection.scalars(select(agents.c.agent_id).order_by(agents.c.agent_id)))


def _known(connection: Connection, ids: Sequence[str]) -> set[str]:
    known: set[str] = set()
    for start in range(0, len(ids), IDS_AT_ONCE):
        part = ids[start : start + IDS_AT_ONCE]
        for table in (outcomes, tombstones, pruned):
            known.update(connection.scalars(select(table.c.id).where(table.c.id.in_(part))))
    return known


def _row(event: Event) -> dict[str, Any]:
    row = {name: event.get(name) for name in ("id", "agent_id", "ok", "task")}
    return {**row, "at": moment(event["at"]), **{name: event.get(name) for name in _FAILURE_FIELDS}}


def _count(connection: Connection, events: Iterable[Event]) -> None:
    counts = Counter(
        (event["at"] // _DAY_US, event["agent_id"], OK if event["ok"] else event["severity"]) for event in events
    )
    rows = [{"day": day, "agent_id": who, "severity": what, "n": n} for (day, who, what), n in sorted(counts.items())]
    add_up(connection, daily_outcomes, rows)


def _hear_of(connection: Connection, events: Iterable[Event]) -> None:
    """Remember who works for whom; an event that does not say changes nothing."""
    told: dict[str, str | None] = {}
    for event in events:
        told[event["agent_id"]] = event.get("parent_agent_id") or told.get(event["agent_id"])
    rows = [{"agent_id": who, "parent_agent_id": parent} for who, parent in sorted(told.items())]
    put(connection, agents, [row for row in rows if row["parent_agent_id"]])
    insert_new(connection, agents, [row for row in rows if not row["parent_agent_id"]])


def _failures() -> Select[Any]:
    columns = [outcomes.c[name] for name in ("id", "at", "agent_id", *_FAILURE_FIELDS)]
    joined = outcomes.outerjoin(agents, agents.c.agent_id == outcomes.c.agent_id)
    return select(*columns, agents.c.parent_agent_id).select_from(joined).where(outcomes.c.ok == false())


_OF_IDS = _failures().where(outcomes.c.id.in_(bindparam("ids", expanding=True)))


def _conditions(query: Query) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if query.agents is not None:
        found.append(outcomes.c.agent_id.in_(query.agents))
    if query.severity:
        found.append(outcomes.c.severity == query.severity)
    if query.since:
        found.append(outcomes.c.at >= query.since)
    if query.behind:
        at, last = query.behind
        found.append(or_(outcomes.c.at < at, (outcomes.c.at == at) & (outcomes.c.id < last)))
    if query.text:
        texts = (outcomes.c.task, outcomes.c.expected_outcome, outcomes.c.actual_outcome)
        found.append(or_(*(func.lower(text).contains(query.text.lower(), autoescape=True) for text in texts)))
    if query.cause:
        said = (diagnoses.c.root_cause == query.cause) & diagnoses.c.current
        found.append(outcomes.c.id.in_(select(diagnoses.c.failure_id).where(said)))
    return found


def _failure(row: Row[Any]) -> LoggedFailure:
    return LoggedFailure.model_validate({name: value for name, value in told(row).items() if value is not None})
