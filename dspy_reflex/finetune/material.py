"""What the store has to teach: approved rules with their failures and corrections, refused ones, and known causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Connection

from dspy_reflex.finetune.row import Turn
from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.review import FiledProposal, Review, State
from dspy_reflex.store.diagnoses import Diagnosed, by_program, current
from dspy_reflex.store.outcomes import failures_of
from dspy_reflex.store.proposals import find, reviews_of

APPROVED: tuple[State, ...] = ("approved", "applied", "kept")
"""States of rules that may be taught."""
REFUSED: tuple[State, ...] = ("rejected",)
"""States of rules that are only ever the worse of two."""
AT_ONCE = 1000
"""Failures read at a time."""


@dataclass(frozen=True)
class Case:
    """One failure behind a rule, and what should have been done instead."""

    failure: LoggedFailure
    diagnosis: Diagnosis | None
    correction: tuple[Turn, ...] | None
    """None where nobody wrote it down."""


@dataclass(frozen=True)
class Decided:
    """A rule that was decided on."""

    proposal: FiledProposal
    reviews: tuple[Review, ...]
    cases: tuple[Case, ...]

    @property
    def family(self) -> str:
        """What is learned together: target, cause and symptom."""
        told = self.proposal
        return f"{told.agent_id}|{told.proposal.root_cause}|{told.symptom}"

    @property
    def approved(self) -> bool:
        """Whether it may be taught."""
        return self.proposal.state in APPROVED

    @property
    def review(self) -> Review | None:
        """The act that decided."""
        return self.reviews[-1] if self.reviews else None


@dataclass(frozen=True)
class Known:
    """A failure whose root cause a person named."""

    failure: LoggedFailure
    diagnosis: Diagnosis
    family: str
    """What is learned together with it."""


def decided(
    connection: Connection, *, since: datetime | None = None, rules: Sequence[str] | None = None
) -> list[Decided]:
    """Rules that were approved or rejected, oldest first; those that were reverted or retired are not among them.

    Args:
        connection: In a transaction.
        since: Only rules decided on at or after this.
        rules: Only these proposals, by id.
    """
    found = [one for one in find(connection, (*APPROVED, *REFUSED)) if rules is None or one.id in rules]
    said: dict[str, list[Review]] = {}
    for review in reviews_of(connection, [one.id for one in found]):
        said.setdefault(review.proposal_id, []).append(review)
    told = [_decided(connection, one, said.get(one.id, [])) for one in found]
    return [one for one in told if since is None or (one.review and one.review.at >= since)]


def corrections(value: Any, failure_id: str) -> tuple[Turn, ...] | None:
    """What a reviewer wrote of a failure: one text for all, a conversation, or one of either by failure id.

    Returns:
        The turns to be imitated, of which the last is the assistant's; None if nothing of use was written.
    """
    if isinstance(value, Mapping):
        return corrections(cast("Mapping[str, Any]", value).get(failure_id), failure_id)
    if isinstance(value, str):
        return (Turn("assistant", value),) if value.strip() else None
    if not isinstance(value, Sequence):
        return None
    turns = [_turn(one) for one in cast("Sequence[Any]", value)]
    whole = tuple(turn for turn in turns if turn is not None)
    return whole if whole and len(whole) == len(turns) and whole[-1].role == "assistant" else None


def _turn(value: Any) -> Turn | None:
    if not isinstance(value, Mapping):
        return None
    told = cast("Mapping[str, Any]", value)
    role, content = told.get("role"), told.get("content")
    if role not in ("system", "user", "assistant") or not isinstance(content, str) or not content.strip():
        return None
    return Turn(role, content)


def _decided(connection: Connection, proposal: FiledProposal, reviews: Sequence[Review]) -> Decided:
    ids = proposal.proposal.failure_ids
    said = current(connection, ids)
    written = next((one.correction for one in reversed(reviews) if one.correction is not None), None)
    cases = [Case(one, said.get(one.id), corrections(written, one.id)) for one in failures_of(connection, ids)]
    return Decided(proposal, tuple(reviews), tuple(cases))


def known(connection: Connection, *, since: datetime | None = None) -> Iterator[Known]:
    """Failures whose cause a person named, oldest first, read a page at a time."""
    last = ""
    while True:
        found = by_program(connection, PERSON, after=last, since=since, limit=AT_ONCE)
        yield from (Known(one.failure, one.diagnosis, _repeats(one)) for one in found)
        if len(found) < AT_ONCE:
            return
        last = found[-1].failure.id


def _repeats(one: Diagnosed) -> str:
    """Repeats of one failure have the same signature."""
    return f"{one.failure.agent_id}|{one.diagnosis.signature}"
