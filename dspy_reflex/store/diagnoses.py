"""Diagnoses: what still needs one, and what was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, exists, false, func, or_, select, true, update

from dspy_reflex.clock import day_of, now
from dspy_reflex.ids import new_id
from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.record import Severity
from dspy_reflex.store.outcomes import IDS_AT_ONCE, failures_of
from dspy_reflex.store.schema import daily_causes, diagnoses, outcomes
from dspy_reflex.store.upsert import add_up


@dataclass(frozen=True)
class Diagnosed:
    """A failure and what is currently said of it."""

    failure: LoggedFailure
    diagnosis: Diagnosis
    question: str | None = None
    """Hash of what was asked, apart from numbers, ids and the like; None if no program was asked."""


@dataclass(frozen=True)
class Said:
    """What is currently said of a failure, without any of its texts."""

    failure_id: str
    at: datetime
    agent_id: str
    severity: Severity
    root_cause: str | None
    symptom: str
    signature: str
    confidence: float
    needs_review: bool


def undiagnosed(
    connection: Connection,
    program: str,
    *,
    since: datetime | None = None,
    agents: Sequence[str] | None = None,
    besides: str | None = None,
    after: LoggedFailure | None = None,
    limit: int | None = None,
) -> list[LoggedFailure]:
    """Failures of which this version of the program has not said anything yet, oldest first.

    What a fall-back said counts for nothing here: it is to be made again. What a person says stands.

    Args:
        connection: In a transaction.
        program: Name and version.
        since: Only those that happened since.
        agents: Only those of these agents; None is all.
        besides: Another program, of which everything counts that it said.
        after: Only those behind this one in the order.
        limit: Most that are wanted.
    """
    by_program = (diagnoses.c.program == program) & (diagnoses.c.again == false())
    by_person = (diagnoses.c.program == PERSON) & (diagnoses.c.current == true())
    ways = or_(by_program, by_person, diagnoses.c.program == besides if besides else false())
    told = (diagnoses.c.failure_id == outcomes.c.id) & ways
    wanted = select(outcomes.c.id).where(outcomes.c.ok == false(), ~exists().where(told))
    if since:
        wanted = wanted.where(outcomes.c.at >= since)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    if after:
        same_time = (outcomes.c.at == after.at) & (outcomes.c.id > after.id)
        wanted = wanted.where(or_(outcomes.c.at > after.at, same_time))
    ids = connection.scalars(wanted.order_by(outcomes.c.at, outcomes.c.id).limit(limit)).all()
    return failures_of(connection, ids)


def count_silent(connection: Connection, *, since: datetime | None, agents: Sequence[str] | None) -> int:
    """How many failures nothing is said of; arguments as in `undiagnosed`."""
    told = (diagnoses.c.failure_id == outcomes.c.id) & (diagnoses.c.current == true())
    wanted = select(func.count()).select_from(outcomes).where(outcomes.c.ok == false(), ~exists().where(told))
    if since:
        wanted = wanted.where(outcomes.c.at >= since)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    return connection.scalar(wanted) or 0


def add(connection: Connection, found: Sequence[Diagnosed], *, again: bool = False) -> None:
    """Make these diagnoses the current ones, and count them by day and cause.

    Left out are failures that were forgotten since, and programs' answers to what a person has answered.

    Args:
        connection: In a write transaction.
        found: One for each failure at most.
        again: Whether a fall-back made them, so that they are to be made again.
    """
    there = _locked(connection, [one.failure.id for one in found])
    former = current(connection, list(there))
    found = [one for one in found if one.failure.id in there and _may_say(one.diagnosis, former.get(one.failure.id))]
    if not found:
        return
    former = {one.failure.id: former[one.failure.id] for one in found if one.failure.id in former}
    for start in range(0, len(former), IDS_AT_ONCE):
        of_these = diagnoses.c.failure_id.in_(list(former)[start : start + IDS_AT_ONCE])
        connection.execute(update(diagnoses).where(of_these).values(current=False))
    connection.execute(diagnoses.insert(), [_row(one, again=again) for one in found])
    _count(connection, found, former)


def answers(connection: Connection, program: str, questions: Sequence[str]) -> dict[str, Diagnosis]:
    """What this program said, not as a fall-back, to these questions, by question."""
    found: dict[str, Diagnosis] = {}
    for start in range(0, len(questions), IDS_AT_ONCE):
        asked = diagnoses.c.question.in_(questions[start : start + IDS_AT_ONCE])
        own = asked & (diagnoses.c.program == program) & (diagnoses.c.again == false())
        first = select(func.min(diagnoses.c.id)).where(own).group_by(diagnoses.c.question)
        rows = connection.execute(select(diagnoses.c.question, diagnoses.c.body).where(diagnoses.c.id.in_(first)))
        found.update((row.question, Diagnosis.model_validate(row.body)) for row in rows)
    return found


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
    connection: Connection,
    *,
    since: datetime | None = None,
    agents: Sequence[str] | None = None,
    program: str | None = None,
) -> list[Diagnosed]:
    """Failures with a current diagnosis, of any program or of one, oldest first."""
    joined = outcomes.join(diagnoses, diagnoses.c.failure_id == outcomes.c.id)
    wanted = select(outcomes.c.id, diagnoses.c.body).select_from(joined).where(diagnoses.c.current == true())
    if since:
        wanted = wanted.where(outcomes.c.at >= since)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    if program is not None:
        wanted = wanted.where(diagnoses.c.program == program)
    rows = connection.execute(wanted.order_by(outcomes.c.at, outcomes.c.id)).all()
    failures = {one.id: one for one in failures_of(connection, [row.id for row in rows])}
    return [Diagnosed(failures[row.id], Diagnosis.model_validate(row.body)) for row in rows]


def said(connection: Connection, *, since: datetime | None = None, agents: Sequence[str] | None = None) -> list[Said]:
    """What is currently said of failures, oldest first: all that it takes to count and group many of them."""
    own, told = outcomes.c, diagnoses.c
    columns = (own.at, own.agent_id, own.severity, told.root_cause, told.symptom, told.signature, told.confidence)
    joined = outcomes.join(diagnoses, told.failure_id == own.id)
    wanted = select(own.id, *columns, told.needs_review).select_from(joined).where(told.current == true())
    if since:
        wanted = wanted.where(own.at >= since)
    if agents is not None:
        wanted = wanted.where(own.agent_id.in_(agents))
    return [Said(*row) for row in connection.execute(wanted.order_by(own.at, own.id))]


def times(connection: Connection, root_cause: str, symptom: str, agents: Sequence[str] | None = None) -> list[datetime]:
    """When failures of this mechanism happened, oldest first."""
    joined = outcomes.join(diagnoses, diagnoses.c.failure_id == outcomes.c.id)
    same = (diagnoses.c.root_cause == root_cause) & (diagnoses.c.symptom == symptom) & diagnoses.c.current
    wanted = select(outcomes.c.at).select_from(joined).where(same).order_by(outcomes.c.at)
    if agents is not None:
        wanted = wanted.where(outcomes.c.agent_id.in_(agents))
    return list(connection.scalars(wanted))


def _may_say(told: Diagnosis, former: Diagnosis | None) -> bool:
    """Whether it may take the place of the former: a program never contradicts a person."""
    return former is None or former.program != PERSON or told.program == PERSON


def _locked(connection: Connection, failure_ids: Sequence[str]) -> set[str]:
    """Those of these failures that are there; nobody else says anything of them, or forgets them, in the meantime."""
    there: set[str] = set()
    for start in range(0, len(failure_ids), IDS_AT_ONCE):
        part = outcomes.c.id.in_(failure_ids[start : start + IDS_AT_ONCE])
        there.update(connection.scalars(select(outcomes.c.id).where(part).order_by(outcomes.c.id).with_for_update()))
    return there


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
        "question": one.question,
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


def by_program(
    connection: Connection, program: str, *, after: str = "", since: datetime | None = None, limit: int
) -> list[Diagnosed]:
    """A page of failures whose current diagnosis a program made, or `person`, in the order of their ids.

    Args:
        connection: In a transaction.
        program: As diagnoses name it.
        after: Id behind which the page begins.
        since: Only what was said at or after this.
        limit: Most on the page.
    """
    joined = outcomes.join(diagnoses, diagnoses.c.failure_id == outcomes.c.id)
    said = (diagnoses.c.program == program) & (diagnoses.c.current == true()) & (outcomes.c.id > after)
    wanted = select(outcomes.c.id, diagnoses.c.body).select_from(joined).where(said)
    if since:
        wanted = wanted.where(diagnoses.c.at >= since)
    rows = connection.execute(wanted.order_by(outcomes.c.id).limit(limit)).all()
    failures = {one.id: one for one in failures_of(connection, [row.id for row in rows])}
    return [Diagnosed(failures[row.id], Diagnosis.model_validate(row.body)) for row in rows]
