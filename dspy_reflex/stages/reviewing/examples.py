"""What people said of diagnoses and rules, as labelled rows that the next compile learns from.

A row has the form of the eval set's: one failure, its root cause, and where somebody approved a rule, the rule. What a
policy approved is not among them, or a program would learn from itself; nor is what was taken back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.review import STANDING, FiledProposal, Review, State
from dspy_reflex.runtime.inputs import MAX_FAILURES
from dspy_reflex.store import diagnoses, proposals
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.outcomes import failures_of
from dspy_reflex.store.store import Store

SOURCE = "review"
APPROVED: tuple[State, ...] = ("approved", *STANDING)
FAILURE_FIELDS = {"id", "agent_id", "task", "expected_outcome", "actual_outcome", "severity", "context"}

Row = dict[str, Any]


def reviewed_rows(store: Store) -> list[Row]:
    """One row for each failure that a person labelled, or that a rule was made from which a person approved.

    Failures that were forgotten are not among them. Where a person says of a failure that its cause is another, it is
    no example for the rule.
    """
    with store.read() as connection:
        labelled = {one.failure.id: one for one in diagnoses.diagnosed(connection, program=PERSON)}
        rows = {key: _labelled_row(one) for key, one in labelled.items()}
        for proposal, review in _approved(connection):
            for row in _rule_rows(connection, proposal, review):
                there = rows.get(row["id"], row)
                if there["root_cause"] == row["root_cause"]:
                    rows[row["id"]] = {**row, "votes": _votes(there, row)}
    return list(rows.values())


def _approved(connection: Connection) -> list[tuple[FiledProposal, Review]]:
    """Rules that stand, each with the review in which a person approved it, oldest first."""
    found = {one.id: one for one in proposals.find(connection, APPROVED)}
    said = {
        one.proposal_id: one
        for one in proposals.reviews_of(connection, found)
        if one.action in ("approve", "edit") and one.policy is None
    }
    return [(found[key], review) for key, review in said.items()]


def _labelled_row(one: Diagnosed) -> Row:
    said = one.diagnosis
    same = hashlib.sha256(f"{said.symptom}\n{said.signature}".encode()).hexdigest()[:16]
    return _row(one.failure, said.root_cause, said.model, group=f"sig_{same}", evidence=said.evidence)


def _rule_rows(connection: Connection, proposal: FiledProposal, review: Review) -> list[Row]:
    """The failures that the program was shown, each with the rule as it was approved."""
    program = proposal.proposal
    failures = failures_of(connection, program.failure_ids[:MAX_FAILURES])
    told = diagnoses.current(connection, [one.id for one in failures])
    return [
        _row(
            one, program.root_cause, review.by, group=proposal.id, component=program.component,
            reference_rule=proposal.rule, evidence=_evidence(told.get(one.id), program.root_cause),
        )
        for one in failures
    ]  # fmt: skip


def _evidence(said: Diagnosis | None, root_cause: str) -> tuple[str, ...]:
    return said.evidence if said and said.root_cause == root_cause else ()


def _row(failure: Failure, root_cause: str | None, by: str, *, evidence: tuple[str, ...], **known: Any) -> Row:
    return {
        **failure.model_dump(mode="json", include=FAILURE_FIELDS),
        "root_cause": root_cause,
        "evidence": list(evidence),
        "votes": [{"annotator": by, "root_cause": root_cause}],
        "source": SOURCE,
        **known,
    }


def _votes(there: Mapping[str, Any], row: Mapping[str, Any]) -> list[Row]:
    """One vote a person."""
    return list({vote["annotator"]: vote for vote in (*there["votes"], *row["votes"])}.values())
