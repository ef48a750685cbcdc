"""What the store has to teach: approved rules with their failures and corrections, refused ones, and known causes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from sqlalchemy import Connection

from dspy_reflex.finetune.families import mechanism
from dspy_reflex.finetune.row import Turn
from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.review import STANDING, FiledProposal, Review, State
from dspy_reflex.store.behind import diagnosed
from dspy_reflex.store.diagnoses import by_program
from dspy_reflex.store.outcomes import failures_of
from dspy_reflex.store.proposals import find, reviews_of
from dspy_reflex.untrusted import as_text, clip, neutralise

APPROVED: tuple[State, ...] = ("approved", *STANDING)
"""States of rules that may be taught."""
REFUSED: tuple[State, ...] = ("rejected",)
"""States of rules that are only ever the worse of two."""
AT_ONCE = 500
"""Failures read at a time."""
MAX_CHARS = 8_000
"""Of a situation, and of what came out. What is longer is clipped in the middle, with a mark."""


@dataclass(frozen=True)
class Correction:
    """What a reviewer says should have been done."""

    asked: tuple[Turn, ...]
    """The question as they tell it; empty if they tell none."""
    answer: tuple[Turn, ...]
    """The right answer; of several turns, what went on between user and assistant."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All that was written."""
        return (*self.asked, *self.answer)


@dataclass(frozen=True)
class Case:
    """One failure, what is said of it, and what should have been done instead."""

    failure: LoggedFailure
    diagnosis: Diagnosis | None
    diagnosis_id: str
    correction: Correction | None = None
    """None where nobody wrote it down."""
    marked: tuple[str, ...] = ()
    """What a reader of its rows should know."""

    @cached_property
    def had(self) -> str:
        """The failure's context as text."""
        return as_text(self.failure.context)

    @property
    def fields(self) -> dict[str, Any]:
        """The failure's fields as programs are asked about them, with the context laid out once for all."""
        return {**vars(self.failure), "context": self.had}

    @cached_property
    def situation(self) -> str:
        """What the agent was asked and what it had, without what came out."""
        text = f"{self.failure.task}\n\n{self.had}" if self.had else self.failure.task
        return clip(neutralise(text), MAX_CHARS)

    @cached_property
    def outcome(self) -> str:
        """What came out."""
        return clip(neutralise(self.failure.actual_outcome), MAX_CHARS)


@dataclass(frozen=True)
class Decided:
    """A rule that was decided on."""

    proposal: FiledProposal
    review: Review | None
    """The act that decided."""
    written: Any
    """What the reviewer wrote that should have been done, of one failure or of all."""
    family: str = ""
    """What is learned together with it."""
    marked: tuple[str, ...] = ()
    """What a reader of its rows should know."""

    @property
    def id(self) -> str:
        """Of its proposal."""
        return self.proposal.id

    @property
    def text(self) -> str:
        """The rule as it stands."""
        return self.proposal.rule

    @cached_property
    def sha256(self) -> str:
        """Of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def mechanism(self) -> str:
        """What it is against, and for whom."""
        return mechanism(self.proposal)

    @property
    def against(self) -> tuple[str, str]:
        """Cause and symptom."""
        return self.proposal.proposal.root_cause, self.proposal.symptom

    @property
    def approved(self) -> bool:
        """Whether it may be taught."""
        return self.proposal.state in APPROVED


def decided(connection: Connection) -> list[Decided]:
    """Rules that were approved or rejected, oldest first; those that were reverted or retired are not among them."""
    found = find(connection, (*APPROVED, *REFUSED))
    said: dict[str, list[Review]] = {}
    for review in reviews_of(connection, [one.id for one in found]):
        said.setdefault(review.proposal_id, []).append(review)
    return [_decided(one, said.get(one.id, [])) for one in found]


def cases(connection: Connection, rule: Decided, *, at_once: int = AT_ONCE) -> Iterator[Case]:
    """The failures behind a rule that are still there, in its order, read a page at a time."""
    ids = rule.proposal.proposal.failure_ids
    for start in range(0, len(ids), at_once):
        page = ids[start : start + at_once]
        said = diagnosed(connection, page)
        for one in failures_of(connection, page):
            named, told = said.get(one.id, ("", None))
            yield Case(one, told, named, correction_of(rule.written, one.id))


def known(connection: Connection, *, since: datetime | None = None) -> Iterator[Case]:
    """Failures whose cause a person named, since then, by id, read a page at a time."""
    last = ""
    while True:
        found = by_program(connection, PERSON, after=last, since=since, limit=AT_ONCE)
        said = diagnosed(connection, [one.failure.id for one in found])
        for one in found:
            named, told = said[one.failure.id]
            yield Case(one.failure, told, named)
        if len(found) < AT_ONCE:
            return
        last = found[-1].failure.id


def correction_of(value: Any, failure_id: str) -> Correction | None:
    """What a reviewer wrote of a failure: one text for all, a conversation, or one of either by failure id.

    Returns:
        None if nothing of use was written: no text, or no conversation in which user and assistant take turns and the
        assistant has the last word.
    """
    if isinstance(value, Mapping):
        return correction_of(cast("Mapping[str, Any]", value).get(failure_id), failure_id)
    if isinstance(value, str):
        return Correction((), (Turn("assistant", value),)) if value.strip() else None
    if not isinstance(value, Sequence):
        return None
    turns = [turn for turn in map(_turn, cast("Sequence[Any]", value)) if turn]
    return _conversation(turns) if len(turns) == len(cast("Sequence[Any]", value)) else None


def _conversation(turns: Sequence[Turn]) -> Correction | None:
    first = next((place for place, one in enumerate(turns) if one.role == "assistant"), len(turns))
    asked, answer = tuple(turns[:first]), tuple(turns[first:])
    questions = [one.role for one in asked]
    roles = ["assistant" if place % 2 == 0 else "user" for place in range(len(answer))]
    in_turns = [one.role for one in answer] == roles and len(answer) % 2 == 1
    return Correction(asked, answer) if in_turns and questions in ([], ["user"], ["system", "user"]) else None


def _turn(value: Any) -> Turn | None:
    if not isinstance(value, Mapping):
        return None
    told = cast("Mapping[str, Any]", value)
    role, content = told.get("role"), told.get("content")
    if role not in ("system", "user", "assistant") or not isinstance(content, str) or not content.strip():
        return None
    return Turn(role, content)


def _decided(proposal: FiledProposal, reviews: Sequence[Review]) -> Decided:
    written = next((one.correction for one in reversed(reviews) if one.correction is not None), None)
    return Decided(proposal, reviews[-1] if reviews else None, written)
