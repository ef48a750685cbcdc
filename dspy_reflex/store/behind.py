"""What stands behind proposals: how their failures read and when that began, and what is said of them, with ids."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, true

from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.store.outcomes import IDS_AT_ONCE
from dspy_reflex.store.schema import diagnoses, outcomes, proposal_failures

_CURRENT = select(diagnoses.c.id, diagnoses.c.body).where(
    diagnoses.c.failure_id.in_(bindparam("ids", expanding=True)), diagnoses.c.current == true()
)


def signatures(connection: Connection) -> dict[str, list[str]]:
    """Proposal to the signatures of its failures, as they are currently diagnosed, in order."""
    joined = proposal_failures.join(diagnoses, diagnoses.c.failure_id == proposal_failures.c.failure_id)
    columns = (proposal_failures.c.proposal_id, diagnoses.c.signature)
    wanted = select(*columns).select_from(joined).where(diagnoses.c.current == true()).distinct()
    found: dict[str, list[str]] = {}
    for proposal, signature in connection.execute(wanted):
        found.setdefault(proposal, []).append(signature)
    return {proposal: sorted(all_of_it) for proposal, all_of_it in found.items()}


def began(connection: Connection) -> dict[str, datetime]:
    """Signature to when the first failure that is diagnosed with it happened."""
    joined = outcomes.join(diagnoses, diagnoses.c.failure_id == outcomes.c.id)
    columns = (diagnoses.c.signature, func.min(outcomes.c.at).label("began"))
    wanted = select(*columns).select_from(joined).where(diagnoses.c.current == true())
    return {row.signature: row.began for row in connection.execute(wanted.group_by(diagnoses.c.signature))}


def diagnosed(connection: Connection, failure_ids: Sequence[str]) -> dict[str, tuple[str, Diagnosis]]:
    """Failure to what is currently said of it, with its id."""
    found: dict[str, tuple[str, Diagnosis]] = {}
    for start in range(0, len(failure_ids), IDS_AT_ONCE):
        rows = connection.execute(_CURRENT, {"ids": failure_ids[start : start + IDS_AT_ONCE]})
        said = ((one, Diagnosis.model_validate(body)) for one, body in rows)
        found.update((told.failure_id, (one, told)) for one, told in said)
    return found
