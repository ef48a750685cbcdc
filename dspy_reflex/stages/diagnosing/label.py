"""A person says why a failure happened; no program says otherwise afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from dspy_reflex.errors import ReviewError, TaxonomyError
from dspy_reflex.mechanism.signature import signature_of
from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.runtime.program import symptom_of_failure
from dspy_reflex.stages.reviewing.review import Act, accountable
from dspy_reflex.store import audit, diagnoses, outcomes
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.store import Store
from dspy_reflex.untrusted import neutralise


def label(store: Store, failure_id: str, root_cause: str, act: Act, labels: Sequence[str]) -> Diagnosis:
    """Make a person's diagnosis of a failure the current one.

    Args:
        store: The store.
        failure_id: Whole.
        root_cause: What they say.
        act: Who they are, and why they say so.
        labels: The causes there are.

    Raises:
        ReviewError: Nobody is named, or there is no such failure.
        TaxonomyError: There is no such cause.
    """
    act = accountable(act)
    if root_cause not in labels:
        raise TaxonomyError(f"{root_cause!r} is no root cause; it is one of {', '.join(labels)}")
    with store.write() as connection:
        failure = outcomes.failure(connection, failure_id)
        if failure is None:
            raise ReviewError(f"{failure_id!r}: there is no such failure; `dspy-reflex failures list` lists them")
        former = diagnoses.current(connection, [failure_id]).get(failure_id)
        said = _diagnosis(failure, root_cause, act, former)
        diagnoses.add(connection, [Diagnosed(failure, said)])
        moved = f"{former.root_cause if former else None} to {root_cause}"
        audit.note(connection, failure_id, "label", actor=act.by, reason=": ".join(filter(None, (moved, act.reason))))
        return said


def _diagnosis(failure: LoggedFailure, root_cause: str, act: Act, former: Diagnosis | None) -> Diagnosis:
    same = former is not None and former.root_cause == root_cause
    return Diagnosis(
        failure_id=failure.id,
        root_cause=root_cause,
        confidence=1.0,
        needs_review=False,
        reasoning=act.reason,
        evidence=former.evidence if former and same else (),
        symptom=former.symptom if former else symptom_of_failure(failure),
        signature=former.signature if former else signature_of(neutralise(failure.actual_outcome)),
        program=PERSON,
        model=act.by,
        score="a person's word",
    )
