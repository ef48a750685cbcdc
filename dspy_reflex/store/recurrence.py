"""How often failures of one kind happened, part by part of a stretch of time, and what was seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Connection, case, false, func, select, true, type_coerce

from dspy_reflex.records.verdict import Verdict
from dspy_reflex.store.schema import MICROSECOND, diagnoses, micros, outcomes, verdicts


@dataclass(frozen=True)
class Part:
    """What happened in one part of a stretch of time."""

    outcomes: int = 0
    """Finished runs, good or bad."""
    failures: int = 0
    """Those that failed in the way asked about."""
    undiagnosed: int = 0
    """Failures of which nothing has been said yet."""


def parts(
    connection: Connection,
    mechanism: tuple[str, str],
    agents: Sequence[str],
    since: datetime,
    length: timedelta,
    number: int,
) -> list[Part]:
    """Count outcomes and recurrences in parts of equal length, in one pass.

    Args:
        connection: In a transaction.
        mechanism: Root cause and symptom of the failures wanted.
        agents: Whose outcomes count.
        since: Where the first part begins.
        length: Of each part.
        number: How many parts.
    """
    cause, symptom = mechanism
    part = (type_coerce(outcomes.c.at, BigInteger) - micros(since)) // (length // MICROSECOND)
    said = (diagnoses.c.failure_id == outcomes.c.id) & (diagnoses.c.current == true())
    same = (diagnoses.c.root_cause == cause) & (diagnoses.c.symptom == symptom)
    unknown = (outcomes.c.ok == false()) & diagnoses.c.id.is_(None)
    counted = (func.count(), func.sum(case((same, 1), else_=0)), func.sum(case((unknown, 1), else_=0)))
    there = (outcomes.c.at >= since) & (outcomes.c.at < since + length * number) & outcomes.c.agent_id.in_(agents)
    wanted = select(part, *counted).select_from(outcomes.outerjoin(diagnoses, said)).where(there).group_by(part)
    found = {int(row[0]): Part(*map(int, row[1:])) for row in connection.execute(wanted)}
    return [found.get(index, Part()) for index in range(number)]


def add_verdict(connection: Connection, verdict: Verdict) -> None:
    """Keep what was seen of a rule."""
    named = {name: getattr(verdict, name) for name in ("id", "proposal_id", "at", "verdict")}
    connection.execute(verdicts.insert().values(**named, body=verdict.model_dump(mode="json")))


def verdicts_of(connection: Connection, proposal_id: str) -> list[Verdict]:
    """What was seen of a rule, oldest first."""
    wanted = select(verdicts.c.body).where(verdicts.c.proposal_id == proposal_id).order_by(verdicts.c.id)
    return [Verdict.model_validate(body) for body in connection.scalars(wanted)]
