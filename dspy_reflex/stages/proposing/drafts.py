"""From a program's answer to a filed proposal, or to the reason why there is none.

A rule is filed if it passes the lint, if no rule of its target says it already or is against the same failures, and if
nobody rejected or took back the like of it before. An answer that comes to nothing is remembered with its failures: as
long as none is new, the program is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.proposing.preview import base_of
from dspy_reflex.stages.proposing.waiting import Answers, Skipped, Waiting, answered_by, answers_in, worst_first
from dspy_reflex.store import proposals
from dspy_reflex.store.locks import FILING, alone
from dspy_reflex.store.refusals import Refusal
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
    former: Refusal | None = None
    """What it has said about all of them before, for nothing."""

    @property
    def remembered(self) -> Proposal | RefusalError | None:
        """The answer that it has given before."""
        return self.former and (self.former.proposal or RefusalError(self.former.reason))


@dataclass(frozen=True)
class Draft:
    """A rule that passed the lint, and the failures that it is for."""

    waiting: Waiting
    existing: Mapping[str, str]
    proposal: Proposal
    former: Refusal | None
    """Where it is remembered from; None if it is new."""

    def says_as_much_as(self, other: Draft) -> bool:
        """Whether one rule would do for both."""
        mine, theirs = self.waiting.mechanism, other.waiting.mechanism
        same = (mine.agent_id, mine.root_cause) == (theirs.agent_id, theirs.root_cause)
        return same and _alike(self.proposal.rule, other.proposal.rule)

    def with_failures_of(self, other: Draft) -> Draft:
        """The same rule, for both."""
        failures = worst_first([*self.waiting.failures, *other.waiting.failures])
        both = replace(self.waiting, failures=failures)
        return replace(self, waiting=both, former=self.former if other.former else None)


@dataclass(frozen=True)
class Refused:
    """An answer that no rule is filed for."""

    waiting: Waiting
    why: str
    rule: str
    """What the program said; empty if it gave no rule."""
    proposal: Proposal | None
    """The rule, if the lint had nothing against it."""
    former: Refusal | None
    """Where it is remembered from; None if it is new."""

    @property
    def skipped(self) -> Skipped:
        """What to say of its failures."""
        if self.former is None:
            return self.waiting.skipped(self.why)
        day = f"{self.former.at:%Y-%m-%d}"
        return self.waiting.skipped(f"{self.why} (answered on {day}; the program is asked again about new failures)")

    def kept(self, program: RuleProgram) -> Refusal:
        """What is remembered of it."""
        of, ids = self.waiting.mechanism, tuple(one.failure_id for one in self.waiting.failures)
        return Refusal(
            of.agent_id, of.root_cause, of.symptom, program.artifact.name, program.model.name, ids, self.rule, self.why,
            self.proposal, now(),
        )  # fmt: skip


def drafted(answers: Iterable[tuple[Question, Proposal | RefusalError]]) -> tuple[list[Draft], list[Refused]]:
    """The rules that may be written, one for all mechanisms that got the same, and what was wrong with the others."""
    drafts: list[Draft] = []
    refused: list[Refused] = []
    for one, answer in answers:
        if isinstance(answer, RefusalError):
            rule = one.former.rule if one.former else ""
            refused.append(Refused(one.waiting, str(answer), rule, None, one.former))
        elif why := lint_of(answer.rule, one.shown):
            why = f"the program's rule cannot be used: {why}"
            refused.append(Refused(one.waiting, why, answer.rule, None, one.former))
        else:
            _take_in(drafts, Draft(one.waiting, one.existing, answer, one.former))
    return drafts, refused


def file_drafts(connection: Connection, drafts: Iterable[Draft]) -> tuple[tuple[FiledProposal, ...], list[Refused]]:
    """File each rule that nothing speaks against, while nobody else files any."""
    filed: list[FiledProposal] = []
    refused: list[Refused] = []
    alone(connection, FILING)
    answers = answers_in(connection)
    for draft in drafts:
        one = _answered(draft, answers) or _known(connection, draft) or _as_filed(draft)
        if isinstance(one, FiledProposal):
            proposals.file(connection, one, actor=ACTOR)
            filed.append(one)
        else:
            refused.append(Refused(draft.waiting, one, draft.proposal.rule, draft.proposal, draft.former))
    return tuple(filed), refused


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


def _answered(draft: Draft, answers: Answers) -> str:
    """What answers one of its failures, since the program was asked; empty if nothing does."""
    agent = draft.waiting.mechanism.agent_id
    return next(filter(None, (answered_by(one, agent, answers) for one in draft.waiting.failures)), "")


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


def _as_filed(draft: Draft) -> FiledProposal | str:
    """The proposal as the store keeps it; or why its target has no file for the component, or none that can be read."""
    waiting, proposal = draft.waiting, draft.proposal
    try:
        file = rule_file(waiting.target, proposal.component)
        base = base_of(file.path)
    except TargetError as error:
        return str(error)
    ids = tuple(one.failure_id for one in waiting.failures)
    return FiledProposal(
        id=new_id("prop"), at=now(), agent_id=waiting.mechanism.agent_id, symptom=waiting.mechanism.symptom,
        severity=waiting.severity, confidence=waiting.confidence, file=str(file.path), base=base,
        rule=proposal.rule, proposal=proposal.model_copy(update={"failure_ids": ids}),
    )  # fmt: skip


def _alike(rule: str, other: str) -> bool:
    return similarity(rule, other) >= ALIKE
