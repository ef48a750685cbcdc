"""From a program's answer to a filed proposal, or to the reason why there is none.

A rule is filed if it passes the lint, if no rule of its target says it already, and if nobody rejected or took back the
like of it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.errors import RefusalError, TargetError
from dspy_reflex.ids import new_id
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.records.review import MOVES, SETTLED, FiledProposal, State
from dspy_reflex.rule_lint.lint import lint
from dspy_reflex.rule_lint.words import similarity
from dspy_reflex.stages.proposing.preview import base_of
from dspy_reflex.stages.proposing.waiting import Skipped, Waiting, worst_first
from dspy_reflex.store import proposals
from dspy_reflex.targets.where import rule_file
from dspy_reflex.untrusted import as_text

ACTOR = "propose"
ALIKE = 0.8
"""Least similarity of two rules that say the same: what the benchmark counts as a repetition."""
OPEN: tuple[State, ...] = tuple(state for state in MOVES if state not in SETTLED)


@dataclass(frozen=True)
class Question:
    """What the program is asked about one mechanism."""

    waiting: Waiting
    shown: tuple[LoggedFailure, ...]
    """The failures that it sees."""
    existing: Mapping[str, str]
    """Rules of the target, and the file that each is in."""


@dataclass(frozen=True)
class Draft:
    """A rule that passed the lint, and the failures that it is for."""

    waiting: Waiting
    existing: Mapping[str, str]
    proposal: Proposal

    def says_as_much_as(self, other: Draft) -> bool:
        """Whether one rule would do for both."""
        mine, theirs = self.waiting.mechanism, other.waiting.mechanism
        same = (mine.agent_id, mine.root_cause) == (theirs.agent_id, theirs.root_cause)
        return same and _alike(self.proposal.rule, other.proposal.rule)

    def with_failures_of(self, other: Draft) -> Draft:
        """The same rule, for both."""
        failures = worst_first([*self.waiting.failures, *other.waiting.failures])
        return replace(self, waiting=replace(self.waiting, failures=failures))


def drafted(
    questions: Sequence[Question], answers: Sequence[Proposal | RefusalError]
) -> tuple[list[Draft], list[Skipped]]:
    """The rules that may be written, one for all mechanisms that got the same, and what was wrong with the others."""
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(answer, RefusalError):
            skipped.append(question.waiting.skipped(str(answer)))
        elif why := lint_of(answer.rule, question.shown):
            skipped.append(question.waiting.skipped(f"the program's rule cannot be used: {why}"))
        else:
            _take_in(drafts, Draft(question.waiting, question.existing, answer))
    return drafts, skipped


def file_drafts(connection: Connection, drafts: Iterable[Draft]) -> tuple[tuple[FiledProposal, ...], list[Skipped]]:
    """File each rule that nothing speaks against."""
    filed: list[FiledProposal] = []
    skipped: list[Skipped] = []
    for draft in drafts:
        if why := _known(connection, draft):
            skipped.append(draft.waiting.skipped(why))
            continue
        try:
            one = _as_filed(draft)
        except TargetError as error:
            skipped.append(draft.waiting.skipped(str(error)))
            continue
        proposals.file(connection, one, actor=ACTOR)
        filed.append(one)
    return tuple(filed), skipped


def lint_of(rule: str, failures: Iterable[LoggedFailure]) -> str:
    """What is wrong with a rule that was made from these failures; empty if nothing is."""
    return "; ".join(f"{one.name}: {one.advice}" for one in lint(rule, sources=texts_of(failures)))


def texts_of(failures: Iterable[LoggedFailure]) -> list[str]:
    """What others wrote in failures."""
    return [
        text
        for one in failures
        for text in (one.task, one.expected_outcome or "", one.actual_outcome, as_text(one.context))
        if text
    ]


def _take_in(drafts: list[Draft], new: Draft) -> None:
    """Add a draft, or its failures to one that says the same."""
    for place, old in enumerate(drafts):
        if old.says_as_much_as(new):
            drafts[place] = old.with_failures_of(new)
            return
    drafts.append(new)


def _known(connection: Connection, draft: Draft) -> str:
    """Where such a rule was before; empty if it is new."""
    rule, of = draft.proposal.rule, draft.waiting.mechanism
    for there, name in draft.existing.items():
        if _alike(rule, there):
            return f"{name} says it already: {there}"
    for one in proposals.find(connection, OPEN, [of.agent_id]):
        if _alike(rule, one.rule):
            return f"{one.id}, which is {one.state}, says it already: {one.rule}"
    alike = [one for one in proposals.lessons_on(connection, of.root_cause, of.symptom) if _alike(rule, one.rule)]
    same = [one for one in proposals.lessons_of(connection, [of.agent_id]) if similarity(rule, one.rule) == 1.0]
    for one in (*alike, *same):
        if one.kind in SETTLED:
            return f"{one.proposal_id} said it and was {one.kind} ({one.reason})"
    return ""


def _as_filed(draft: Draft) -> FiledProposal:
    """The proposal as the store keeps it.

    Raises:
        TargetError: Its target has no file for the component, or the file cannot be read.
    """
    waiting, proposal = draft.waiting, draft.proposal
    file = rule_file(waiting.target, proposal.component)
    ids = tuple(one.failure_id for one in waiting.failures)
    return FiledProposal(
        id=new_id("prop"), at=now(), agent_id=waiting.mechanism.agent_id, symptom=waiting.mechanism.symptom,
        severity=waiting.severity, confidence=waiting.confidence, file=str(file.path), base=base_of(file.path),
        rule=proposal.rule, proposal=proposal.model_copy(update={"failure_ids": ids}),
    )  # fmt: skip


def _alike(rule: str, other: str) -> bool:
    return similarity(rule, other) >= ALIKE
