"""What is in the store of failures: lists of them, and everything about one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from dspy_reflex.errors import StoreError
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.outcomes import Query
from dspy_reflex.store.schema import tombstones
from dspy_reflex.store.store import Store


@dataclass(frozen=True)
class Listed:
    """A failure and what is currently said of it."""

    failure: LoggedFailure
    diagnosis: Diagnosis | None


@dataclass(frozen=True)
class Shown(Listed):
    """The same, and the rules that it stands behind."""

    proposals: tuple[FiledProposal, ...]


def list_failures(store: Store, query: Query) -> tuple[Listed, ...]:
    """Failures, newest first."""
    with store.read() as connection:
        found = outcomes.failures(connection, query)
        said = diagnoses.current(connection, [one.id for one in found])
    return tuple(Listed(one, said.get(one.id)) for one in found)


def show_failure(store: Store, failure_id: str) -> Shown:
    """One failure.

    Raises:
        StoreError: There is none of that id; says whether there was.
    """
    with store.read() as connection:
        found = outcomes.failure(connection, failure_id)
        if found is None:
            raise StoreError(_why_not(connection, failure_id))
        said = diagnoses.current(connection, [failure_id])
        rules = proposals.of_failure(connection, failure_id)
    return Shown(found, said.get(failure_id), tuple(rules))


def _why_not(connection: Connection, failure_id: str) -> str:
    stone = connection.execute(select(tombstones).where(tombstones.c.id == failure_id)).first()
    if stone is None:
        return f"{failure_id}: no such failure; `dspy-reflex failures list` shows what is there"
    why = f": {stone.reason}" if stone.reason else ""
    return f"{failure_id} was forgotten on {stone.at:%Y-%m-%d} by {stone.by}{why}; nothing of it is left"
