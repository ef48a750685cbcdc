"""What stands behind proposals and diagnoses, without any text of a failure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select, true

from dspy_reflex.store.outcomes import IDS_AT_ONCE
from dspy_reflex.store.schema import diagnoses, outcomes, proposal_failures


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


def diagnosis_ids(connection: Connection, failure_ids: Sequence[str]) -> dict[str, str]:
    """Failure to the id of what is currently said of it."""
    found: dict[str, str] = {}
    for start in range(0, len(failure_ids), IDS_AT_ONCE):
        of_these = diagnoses.c.failure_id.in_(failure_ids[start : start + IDS_AT_ONCE])
        wanted = select(diagnoses.c.failure_id, diagnoses.c.id).where(of_these, diagnoses.c.current == true())
        found.update((failure, one) for failure, one in connection.execute(wanted))
    return found
