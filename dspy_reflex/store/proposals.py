"""Proposals: file them, find them, and move them on, each move with a line in the audit trail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select, true, update

from dspy_reflex.clock import now
from dspy_reflex.errors import StoreError
from dspy_reflex.ids import new_id
from dspy_reflex.records.review import MOVES, FiledProposal, Lesson, Patch, Review, State
from dspy_reflex.store.audit import note
from dspy_reflex.store.rows import told
from dspy_reflex.store.schema import diagnoses, lessons, patches, proposal_failures, proposals, reviews

_OWN = (
    "id",
    "at",
    "state",
    "agent_id",
    "symptom",
    "file",
    "rule",
    "severity",
    "confidence",
    "base",
    "approval",
)


def file(connection: Connection, proposal: FiledProposal, *, actor: str) -> None:
    """Put a new proposal into the store."""
    row = {name: getattr(proposal, name) for name in _OWN}
    program = proposal.proposal
    connection.execute(
        proposals.insert().values(
            **row, component=program.component, root_cause=program.root_cause, body=program.model_dump(mode="json")
        )
    )
    behind = [{"proposal_id": proposal.id, "failure_id": one} for one in dict.fromkeys(program.failure_ids)]
    if behind:
        connection.execute(proposal_failures.insert(), behind)
    note(connection, proposal.id, "propose", actor=actor, after=proposal.state, reason=program.rationale)


def get(connection: Connection, proposal_id: str, *, lock: bool = False) -> FiledProposal:
    """One proposal, by its id or by the beginning of it.

    Args:
        connection: In a transaction.
        proposal_id: Whole, or so much of it that it is the only one.
        lock: Let nobody else change it before the transaction ends.

    Raises:
        StoreError: There is none, or more than one.
    """
    wanted = select(proposals).where(proposals.c.id.startswith(proposal_id, autoescape=True)).limit(2)
    found = connection.execute(wanted.with_for_update() if lock else wanted).all()
    if len(found) != 1:
        many = "more than one proposal" if found else "no proposal"
        raise StoreError(f"{proposal_id!r}: {many} of this id; `dspy-reflex review` lists them")
    return _filed(found[0])


def find(
    connection: Connection, states: Sequence[State] | None = None, agents: Sequence[str] | None = None
) -> list[FiledProposal]:
    """Proposals in these states, oldest first."""
    wanted = select(proposals).order_by(proposals.c.at, proposals.c.id)
    if states is not None:
        wanted = wanted.where(proposals.c.state.in_(states))
    if agents is not None:
        wanted = wanted.where(proposals.c.agent_id.in_(agents))
    return [_filed(row) for row in connection.execute(wanted)]


def of_failure(connection: Connection, failure_id: str) -> list[FiledProposal]:
    """Proposals that a failure stands behind, oldest first."""
    behind = select(proposal_failures.c.proposal_id).where(proposal_failures.c.failure_id == failure_id)
    wanted = select(proposals).where(proposals.c.id.in_(behind)).order_by(proposals.c.at, proposals.c.id)
    return [_filed(row) for row in connection.execute(wanted)]


def move(
    connection: Connection,
    proposal: FiledProposal,
    to: State,
    *,
    actor: str,
    action: str,
    reason: str = "",
    **changed: Any,
) -> FiledProposal:
    """Bring a proposal into another state.

    Args:
        connection: In the write transaction in which the proposal was got with `lock`.
        proposal: As it stands.
        to: The new state.
        actor: Who does it.
        action: What they do.
        reason: Why.
        changed: Columns that change with it: `rule`, `approval`, `base`.

    Raises:
        StoreError: There is no way from its state to that one.
    """
    if to not in MOVES[proposal.state]:
        how = "already" if to == proposal.state else f"and cannot become {to}"
        raise StoreError(f"{proposal.id} is {proposal.state} {how}")
    here = (proposals.c.id == proposal.id) & (proposals.c.state == proposal.state)
    if connection.execute(update(proposals).where(here).values(state=to, **changed)).rowcount != 1:
        raise StoreError(f"{proposal.id} was changed by somebody else at the same time; look at it again")
    note(connection, proposal.id, action, actor=actor, reason=reason, before=proposal.state, after=to)
    return proposal.model_copy(update={"state": to, **changed})


def add_review(connection: Connection, review: Review) -> None:
    """Keep what a reviewer said."""
    connection.execute(reviews.insert().values(**_values(review)))


def reviews_of(connection: Connection, proposal_ids: Iterable[str]) -> list[Review]:
    """What was said of these proposals, oldest first."""
    wanted = select(reviews).where(reviews.c.proposal_id.in_(list(proposal_ids))).order_by(reviews.c.id)
    return [Review.model_validate(told(row)) for row in connection.execute(wanted)]


def add_patch(connection: Connection, patch: Patch) -> None:
    """Keep what was changed in a file."""
    connection.execute(patches.insert().values(**_values(patch)))


def get_patch(connection: Connection, patch_id: str) -> Patch | None:
    """One edit by its id; None if there is none."""
    found = connection.execute(select(patches).where(patches.c.id == patch_id)).first()
    return Patch.model_validate(told(found)) if found else None


def patches_of(connection: Connection, *, proposal_id: str | None = None, file: str | None = None) -> list[Patch]:
    """Edits for a proposal or of a file, oldest first."""
    wanted = select(patches).order_by(patches.c.id)
    if proposal_id is not None:
        wanted = wanted.where(patches.c.proposal_id == proposal_id)
    if file is not None:
        wanted = wanted.where(patches.c.file == file)
    return [Patch.model_validate(told(row)) for row in connection.execute(wanted)]


def learn(connection: Connection, proposal: FiledProposal, kind: str, reason: str) -> None:
    """Keep what came of a rule."""
    connection.execute(
        lessons.insert().values(
            id=new_id("lesson"), at=now(), proposal_id=proposal.id, kind=kind, agent_id=proposal.agent_id,
            root_cause=proposal.proposal.root_cause, symptom=proposal.symptom, rule=proposal.rule, reason=reason,
        )
    )  # fmt: skip


def lessons_on(connection: Connection, root_cause: str, symptom: str) -> list[Lesson]:
    """What came of rules against this mechanism, oldest first."""
    same = (lessons.c.root_cause == root_cause) & (lessons.c.symptom == symptom)
    return [
        Lesson.model_validate(told(row))
        for row in connection.execute(select(lessons).where(same).order_by(lessons.c.id))
    ]


def lessons_of(connection: Connection, agents: Sequence[str]) -> list[Lesson]:
    """What came of rules of these targets, oldest first."""
    wanted = select(lessons).where(lessons.c.agent_id.in_(agents)).order_by(lessons.c.id)
    return [Lesson.model_validate(told(row)) for row in connection.execute(wanted)]


def mechanisms(connection: Connection) -> dict[str, set[tuple[str, str]]]:
    """Proposal id to symptom and signature of the failures behind it that still have its root cause."""
    behind = proposal_failures.join(proposals, proposals.c.id == proposal_failures.c.proposal_id).join(
        diagnoses,
        (diagnoses.c.failure_id == proposal_failures.c.failure_id)
        & (diagnoses.c.root_cause == proposals.c.root_cause)
        & (diagnoses.c.current == true()),
    )
    wanted = select(proposals.c.id, diagnoses.c.symptom, diagnoses.c.signature).select_from(behind).distinct()
    found: dict[str, set[tuple[str, str]]] = {}
    for proposal_id, symptom, signature in connection.execute(wanted):
        found.setdefault(proposal_id, set()).add((symptom, signature))
    return found


def decided_by(connection: Connection, policy: str, since: datetime) -> int:
    """How many reviews a policy has made since."""
    made = (reviews.c.policy == policy) & (reviews.c.at >= since)
    return connection.scalar(select(func.count()).select_from(reviews).where(made)) or 0


def _filed(row: Row[Any]) -> FiledProposal:
    own = {name: value for name, value in told(row).items() if name in _OWN}
    return FiledProposal.model_validate({**own, "proposal": row.body})


def _values(record: Review | Patch) -> dict[str, Any]:
    return record.model_dump(exclude={"schema_version"})
