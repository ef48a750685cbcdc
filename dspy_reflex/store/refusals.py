"""Answers of a program that no rule was filed for, so that nobody pays for the same answer again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, select

from dspy_reflex.ids import new_id
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.store.outcomes import IDS_AT_ONCE
from dspy_reflex.store.schema import refusal_failures, refusals


@dataclass(frozen=True)
class Refusal:
    """What a program said about failures of one target and root cause, and why that was not filed."""

    agent_id: str
    """The target's pattern."""
    root_cause: str
    symptom: str
    program: str
    """Name and version."""
    model: str
    failure_ids: tuple[str, ...]
    """All failures that it was asked for."""
    rule: str
    """What it said; empty if it gave no rule."""
    reason: str
    proposal: Proposal | None
    """The rule as it could still be filed; None if there is none, or the lint is against it."""
    at: datetime
    """When it was said."""


def keep(connection: Connection, refusal: Refusal) -> None:
    """Remember one, in the place of earlier ones of the same kind that it shares a failure with."""
    for part in _parts(refusal.failure_ids):
        shared = select(refusal_failures.c.refusal_id).where(refusal_failures.c.failure_id.in_(part))
        connection.execute(delete(refusals).where(*_of_kind(refusal), refusals.c.id.in_(shared)))
    key = new_id("ref")
    connection.execute(
        refusals.insert().values(
            id=key, at=refusal.at, agent_id=refusal.agent_id, root_cause=refusal.root_cause, symptom=refusal.symptom,
            program=refusal.program, model=refusal.model, rule=refusal.rule, reason=refusal.reason,
            body=refusal.proposal and refusal.proposal.model_dump(mode="json"),
        )
    )  # fmt: skip
    behind = [{"refusal_id": key, "failure_id": one} for one in dict.fromkeys(refusal.failure_ids)]
    connection.execute(refusal_failures.insert(), behind)


def of_program(connection: Connection, program: str, model: str) -> list[Refusal]:
    """What a program on a model has said for nothing, newest first."""
    mine = (refusals.c.program == program) & (refusals.c.model == model)
    behind: dict[str, list[str]] = {}
    joined = refusal_failures.join(refusals)
    for key, failure_id in connection.execute(
        select(refusals.c.id, refusal_failures.c.failure_id).select_from(joined).where(mine)
    ):
        behind.setdefault(key, []).append(failure_id)
    rows = connection.execute(select(refusals).where(mine).order_by(refusals.c.id.desc()))
    return [
        Refusal(
            row.agent_id, row.root_cause, row.symptom, row.program, row.model, tuple(behind.get(row.id, ())), row.rule,
            row.reason, Proposal.model_validate(row.body) if row.body else None, row.at,
        )
        for row in rows
    ]  # fmt: skip


def _of_kind(refusal: Refusal) -> list[ColumnElement[bool]]:
    names = ("agent_id", "root_cause", "program", "model")
    return [refusals.c[name] == getattr(refusal, name) for name in names]


def _parts(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE)]
