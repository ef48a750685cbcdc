"""Votes to labels: what one annotator says goes into a row, and what several say becomes its label.

As long as annotators differ, the first one's label stands, the others' count as acceptable, and the row is undecided
until somebody says in writing who is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.labelled import LABEL_FIELDS, LabelledFailure, Vote
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.record import Component

GIVEN = ("existing_rules", "family", "group", "source")
"""Label fields that an unlabelled failure may come with; the others are the annotators' to say."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one annotator says about one failure."""

    root_cause: str | None
    """None to blame nothing: it cannot be decided, or nothing went wrong."""
    second: str | None = None
    component: Component | None = None
    evidence: tuple[str, ...] = ()


def unlabelled(failure: Failure) -> LabelledFailure:
    """A row without a label, from a failure whose file may have had labels: an annotator must not see those.

    Raises:
        DatasetError: Family, group, source or existing rules have a form that cannot be used.
    """
    fields = failure.model_dump()
    label: dict[str, Any] = {name: fields.pop(name) for name in LABEL_FIELDS if name in fields}
    given = {name: value for name, value in label.items() if name in GIVEN and value is not None}
    try:
        return LabelledFailure.model_validate({"failure": fields, "root_cause": None, **given})
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise DatasetError(f"{failure.id or failure.task[:40]!r}: {place} cannot be used; leave it out") from None


def with_vote(row: LabelledFailure, annotator: str, said: Annotation) -> LabelledFailure:
    """The row with what an annotator says, in place of what they may have said before."""
    vote = Vote(annotator=annotator, root_cause=said.root_cause, second=said.second)
    others = [one for one in row.votes if one.annotator != annotator]
    changed = {
        "component": row.component if others and row.component else said.component,
        "evidence": tuple(dict.fromkeys([*(row.evidence if others else ()), *said.evidence])),
        "adjudication": None,
    }
    return _labelled(row.model_copy(update=changed), [*others, vote])


def undecided(rows: Iterable[LabelledFailure]) -> list[LabelledFailure]:
    """The rows whose annotators differ and that nobody has decided."""
    return [row for row in rows if len({vote.root_cause for vote in row.votes}) > 1 and not row.adjudication]


def decided(row: LabelledFailure, root_cause: str | None, reason: str) -> LabelledFailure:
    """The row with its label decided, and why; what else was voted for stays acceptable."""
    also = tuple(label for label in (row.root_cause, *row.also_acceptable) if label and label != root_cause)
    return row.model_copy(
        update={"root_cause": root_cause, "also_acceptable": tuple(dict.fromkeys(also)), "adjudication": reason}
    )


def _labelled(row: LabelledFailure, votes: Sequence[Vote]) -> LabelledFailure:
    first = votes[0].root_cause if votes else None
    named = [label for vote in votes for label in (vote.root_cause, vote.second) if label and label != first]
    return row.model_copy(
        update={"votes": tuple(votes), "root_cause": first, "also_acceptable": tuple(dict.fromkeys(named))}
    )
