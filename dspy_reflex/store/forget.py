"""What is to go: one failure for good and by name, or everything that is old."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Select, Table, delete, select

from dspy_reflex.clock import now
from dspy_reflex.errors import StoreError
from dspy_reflex.store.audit import note
from dspy_reflex.store.schema import (
    diagnoses,
    outcomes,
    proposal_failures,
    proposals,
    pruned,
    quarantine,
    refusal_failures,
    refusals,
    tombstones,
)
from dspy_reflex.store.upsert import insert_found, insert_new


def forget(connection: Connection, failure_id: str, *, actor: str, reason: str) -> None:
    """Take one outcome and all that was said of it out of the store, and see to it that it does not come back.

    A rule stays, with its failure's id struck from what it was proposed for; counts stay, as they hold no text.

    Raises:
        StoreError: There is no such outcome.
    """
    if connection.scalar(select(outcomes.c.id).where(outcomes.c.id == failure_id)) is None:
        raise StoreError(f"{failure_id}: no such failure; `dspy-reflex failures list` shows what is there")
    insert_new(connection, tombstones, [{"id": failure_id, "at": now(), "by": actor, "reason": reason}])
    _strike(connection, failure_id)
    connection.execute(delete(refusals).where(refusals.c.id.in_(_refused(failure_id))))
    _remove(connection, [failure_id])
    note(connection, failure_id, "forget", actor=actor, reason=reason, after="forgotten")


def forgotten(connection: Connection) -> set[str]:
    """Ids of everything that was forgotten."""
    return set(connection.scalars(select(tombstones.c.id)))


def prune(connection: Connection, before: datetime) -> int:
    """Remove outcomes older than this, but for those that a rule was proposed for, and what could not be read.

    Counts stay, and ids with them: what comes from a file again later is not counted twice.

    Returns:
        How many outcomes went.
    """
    needed = select(proposal_failures.c.failure_id)
    connection.execute(delete(quarantine).where(quarantine.c.at < before))
    old = outcomes.c.at < before
    insert_found(connection, pruned, "id", select(outcomes.c.id).where(old, outcomes.c.id.not_in(needed)))
    gone = old & outcomes.c.id.in_(select(pruned.c.id))
    ids = select(outcomes.c.id).where(gone)
    connection.execute(delete(diagnoses).where(diagnoses.c.failure_id.in_(ids)))
    connection.execute(delete(refusal_failures).where(refusal_failures.c.failure_id.in_(ids)))
    connection.execute(delete(refusals).where(refusals.c.id.not_in(select(refusal_failures.c.refusal_id))))
    return connection.execute(delete(outcomes).where(gone)).rowcount


def _strike(connection: Connection, failure_id: str) -> None:
    behind = select(proposal_failures.c.proposal_id).where(proposal_failures.c.failure_id == failure_id)
    for row in connection.execute(select(proposals.c.id, proposals.c.body).where(proposals.c.id.in_(behind))).all():
        ids = [one for one in row.body["failure_ids"] if one != failure_id]
        body = {**row.body, "failure_ids": ids}
        connection.execute(proposals.update().where(proposals.c.id == row.id).values(body=body))
    connection.execute(delete(proposal_failures).where(proposal_failures.c.failure_id == failure_id))


def _refused(failure_id: str) -> Select[tuple[str]]:
    """What a program said about it for nothing: the rule may repeat what the failure says."""
    return select(refusal_failures.c.refusal_id).where(refusal_failures.c.failure_id == failure_id)


def _remove(connection: Connection, ids: list[str]) -> None:
    by_failure: list[tuple[Table, str]] = [(diagnoses, "failure_id"), (outcomes, "id")]
    for table, column in by_failure:
        connection.execute(delete(table).where(table.c[column].in_(ids)))
