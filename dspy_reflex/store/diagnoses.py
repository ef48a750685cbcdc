"""Diagnoses: what still needs one, and what was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, exists, false, select, true, update

from dspy_reflex.clock import day_of, now
from dspy_reflex.ids import new_id
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.store.outcomes import IDS_AT_ONCE, failures_of
from dspy_reflex.store.schema import daily_causes, diagnoses, outcomes
from dspy_reflex.store.upsert import add_up


@dataclass(frozen=True)
class Diagnosed:
    """A failure and what is currently said of it."""

    failure: LoggedFailure
    diagnosis: Diagnosis


def undiagnosed(
    connection: Connection,
    program: str,
    *,
    since: datetime | None = None,
    agents: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[LoggedFailure]:
    """Failures of which this version of the program has not said anything yet, oldest first.

    What a fall-back said counts for nothing here: it is to be made again.
    """
    said = (diagnoses.c.failure_id == outcomes.c.id) & (diagnoses.c.program == program) & (diagnoses.c.again == false())
    wanted = select(outcomes.c.id).where(outcomes.c.ok == false(), ~exists().where(said))
    if since:
        wanted = wanted.where(outcomes.c.at >= since)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    ids = connection.scalars(wanted.order_by(outcomes.c.at, outcomes.c.id).limit(limit)).all()
    return failures_of(connection, ids)


def add(connection: Connection, found: Sequence[Diagnosed], *, again: bool = False) -> None:
    """Make these diagnoses the current ones, and count them by day and cause.

    Args:
        connection: In a write transaction.
        found: One for each failure at most.
        again: Whether a fall-back made them, so that they are to be made again.
    """
    if not found:
        return
    former = current(connection, [one.failure.id for one in found])
    for start in range(0, len(former), IDS_AT_ONCE):
        of_these = diagnoses.c.failure_id.in_(list(former)[start : start + IDS_AT_ONCE])
        connection.execute(update(diagnoses).where(of_these).values(current=False))
    connection.execute(diagnoses.insert(), [_row(one, again=again) for one in found])
    _count(connection, found, former)


def current(connection: Connection, failure_ids: Sequence[str]) -> dict[str, Diagnosis]:
    """What is currently said of each of these failures, by failure id."""
    found: dict[str, Diagnosis] = {}
    for start in range(0, len(failure_ids), IDS_AT_ONCE):
        part = failure_ids[start : start + IDS_AT_ONCE]
        bodies = connection.scalars(
            select(diagnoses.c.body).where(diagnoses.c.failure_id.in_(part), diagnoses.c.current == true())
        )
        found.update((one.failure_id, one) for one in map(Diagnosis.model_validate, bodies))
    return found


def diagnosed(
    connection: Connection, *, since: datetime | None = None, agents: Sequence[str] | None = None
) -> list[Diagnosed]:
    """Failures with a current diagnosis, oldest first."""
    joined = outcomes.join(diagnoses, diagnoses.c.failure_id == outcomes.c.id)
    wanted = select(outcomes.c.id, diagnoses.c.body).select_from(joined).where(diagnoses.c.current == true())
    if since:
        wanted = wanted.where(outcomes.c.at >= since)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    rows = connection.execute(wanted.order_by(outcomes.c.at, outcomes.c.id)).all()
    failures = {one.id: one for one in failures_of(connection, [row.id for row in rows])}
    return [Diagnosed(failures[row.id], Diagnosis.model_validate(row.body)) for row in rows]


def times(connection: Connection, root_cause: str, symptom: str, agents: Sequence[str] | None = None) -> list[datetime]:
    """When failures of this mechanism happened, oldest first."""
    joined = outcomes.join(diagnoses, diagnoses.c.failure_id == outcomes.c.id)
    same = (diagnoses.c.root_cause == root_cause) & (diagnoses.c.symptom == symptom) & diagnoses.c.current
    wanted = select(outcomes.c.at).select_from(joined).where(same).order_by(outcomes.c.at)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    return list(connection.scalars(wanted))


def _row(one: Diagnosed, *, again: bool) -> dict[str, Any]:
    told = one.diagnosis
    named = ("failure_id", "root_cause", "confidence", "needs_review", "symptom", "signature", "program", "model")
    row = {name: getattr(told, name) for name in named}
    return {
        **row,
        "id": new_id("diag"),
        "at": now(),
        "current": True,
        "again": again,
        "body": told.model_dump(mode="json"),
    }


def _count(connection: Connection, found: Sequence[Diagnosed], former: Mapping[str, Diagnosis]) -> None:
    """Add what is said now to the counts, and take away what was said before."""
    counts: Counter[tuple[int, str, str, str]] = Counter()
    for one in found:
        failure = one.failure
        counts[day_of(failure.at), failure.agent_id, one.diagnosis.root_cause or "", failure.severity] += 1
        if (was := former.get(failure.id)) is not None:
            counts[day_of(failure.at), failure.agent_id, was.root_cause or "", failure.severity] -= 1
    names = ("day", "agent_id", "root_cause", "severity")
    add_up(connection, daily_causes, [{**dict(zip(names, key, strict=True)), "n": n} for key, n in counts.items() if n])
