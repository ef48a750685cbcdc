"""A store with rules in every state, each with words of its own, so that a leak shows."""

from __future__ import annotations

from typing import Any

from dspy_reflex.clock import now
from dspy_reflex.ids import new_id
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.review import FiledProposal, Review, State
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.store import Store
from tests.store.events import diagnosed, event, filed

WAYS: dict[State, tuple[State, ...]] = {
    "pending": (), "approved": ("approved",), "rejected": ("rejected",), "deferred": ("deferred",),
    "applied": ("approved", "applied"), "kept": ("approved", "applied", "kept"),
    "reverted": ("approved", "applied", "reverted"),
}  # fmt: skip
"""Along which states a proposal comes to where it is."""


def failed(store: Store, *texts: str, **changed: Any) -> list[LoggedFailure]:
    """Failures with these outcomes, each with a diagnosis."""
    told = [event(task=f"Task of {text}", actual_outcome=text, **changed) for text in texts]
    with store.write() as connection:
        outcomes.take_in(connection, told)
        found = outcomes.failures_of(connection, [one["id"] for one in told])
        diagnoses.add(connection, [diagnosed(one) for one in found])
    return found


def ruled(store: Store, rule: str, state: State, *failures: LoggedFailure, correction: Any = None) -> FiledProposal:
    """A rule in a state, for these failures."""
    one = filed(*(failure.id for failure in failures), rule=rule)
    with store.write() as connection:
        proposals.file(connection, one, actor="test")
        for to in WAYS[state]:
            one = proposals.move(connection, one, to, actor="ada", action=to)
        if state not in ("pending", "deferred"):
            action = "reject" if state == "rejected" else "approve"
            said = {"by": "ada", "action": action, "before": rule, "rule": rule, "correction": correction}
            review = Review.model_validate({"id": new_id("rev"), "proposal_id": one.id, "at": now(), **said})
            proposals.add_review(connection, review)
    return one


def known(store: Store, failure: LoggedFailure, cause: str) -> None:
    """A person named the cause of a failure."""
    with store.write() as connection:
        diagnoses.add(connection, [diagnosed(failure, cause, program="person", model="person")])
