"""Rows of a store for a plan, one after the other, with what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice

from sqlalchemy import Connection

from dspy_reflex.finetune.clean import clean
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.lessons import Lessons
from dspy_reflex.finetune.material import Case, Correction, Decided
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Row
from dspy_reflex.finetune.rows.behave import behave, controls
from dspy_reflex.finetune.rows.classify import classify
from dspy_reflex.finetune.rows.lineage import lineage
from dspy_reflex.finetune.rows.propose import disliked, propose
from dspy_reflex.finetune.rows.self_edit import derived, stated
from dspy_reflex.finetune.rows.share import falls_in
from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.runtime import library
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact
from dspy_reflex.runtime.inputs import MAX_FAILURES

NO_CORRECTION = "failures of approved rules without a correction that can be used"
NO_LABEL = "failures with a cause that the root-cause program does not know"
SAME = "rows that say the same as another"
CONTRARY = "answers that are liked in one row and disliked in another"
EVEN = "preferences whose two sides say the same"


class Source:
    """Rows of a store for a plan; `left_out` and `redacted` count as they are drawn."""

    def __init__(self, connection: Connection, plan: Plan, guard: Guard) -> None:
        """Read the rules that were decided on; failures are read as rows are drawn.

        Raises:
            StoreError: There is no proposal that the plan names.
        """
        self.left_out: Counter[str] = Counter()
        self.redacted: Counter[str] = Counter()
        self._plan = plan
        self._lessons = Lessons(connection, plan, guard, self.left_out)

    @property
    def approved(self) -> frozenset[str]:
        """All rules of the store that may be taught, wanted or not."""
        return self._lessons.approved

    def __iter__(self) -> Iterator[Row]:
        """Every row once, clean, with split and id."""
        seen: set[int] = set()
        for row in self._drawn():
            whole = clean(self.redacted, row).finished(self._lessons.split(row.family))
            if why := _unfit(whole, seen):
                self.left_out[why] += 1
            else:
                seen.add(whole.number)
                yield whole

    def _drawn(self) -> Iterator[Row]:
        """Approved rules come before rejected ones: what is both is wanted."""
        plan, lessons = self._plan, self._lessons
        for rule in lessons.taught:
            yield from self._of_rule(rule)
        if "propose" in plan.tasks:
            for rule in chain.from_iterable(lessons.refused.values()):
                yield disliked(rule, lessons.shown(rule), self._programs["rule"])
        if "classify" in plan.tasks and plan.rules is None:
            for case in lessons.known():
                yield from self._named(case, case.diagnosis)

    def _of_rule(self, rule: Decided) -> Iterator[Row]:
        found, tasks = self._lessons.cases(rule), self._plan.tasks
        shown = tuple(islice(found, MAX_FAILURES))
        if shown and "propose" in tasks:
            worse = self._lessons.refused.get(rule.mechanism, ())
            yield from propose(rule, shown, worse, self._programs["rule"])
        if shown and "self_edit" in tasks:
            yield stated(rule, shown)
        for case in chain(shown, found):
            if case.correction:
                yield from self._corrected(rule, case, case.correction)
            elif "behave" in tasks or "self_edit" in tasks:
                self.left_out[NO_CORRECTION] += 1
            if "classify" in tasks:
                yield from self._stood_by(rule, case)

    def _corrected(self, rule: Decided, case: Case, correction: Correction) -> Iterator[Row]:
        tasks, shares, rests = self._plan.tasks, self._plan.shares, lineage(rule, [case])
        if "behave" in tasks:
            yield from behave(rule, case, correction, rests, shares)
            if falls_in(shares.controls, "control", rule.id, case.failure.id):
                yield from self._controls(rule, case, correction)
        if "self_edit" in tasks:
            yield derived(rule, case, correction, rests)

    def _controls(self, rule: Decided, case: Case, correction: Correction) -> Iterator[Row]:
        other = self._lessons.others.get(rule.id)
        if other and (elsewhere := self._lessons.first(other)):
            yield from controls(rule, case, correction, other, elsewhere)

    def _stood_by(self, rule: Decided, case: Case) -> Iterator[Row]:
        """Whoever approves a rule stands by the cause it is against. What people named themselves is drawn by itself."""
        said = case.diagnosis
        drawn = self._plan.rules is None and self._plan.since is None
        if said and said.root_cause == rule.proposal.proposal.root_cause and not (drawn and said.program == PERSON):
            yield from self._named(case, said)

    def _named(self, case: Case, said: Diagnosis | None) -> Iterator[Row]:
        program = self._programs["root_cause"]
        if said and said.root_cause in program.labels:
            yield classify(case, said, self._lessons.family_of(said.signature), program)
        else:
            self.left_out[NO_LABEL] += 1

    @cached_property
    def _programs(self) -> dict[str, Artifact]:
        """Those that were compiled for no model."""
        return {name: library.find(name, ANY_MODEL) for name in ("root_cause", "rule")}


def _unfit(row: Row, seen: set[int]) -> str:
    """Why a row is of no use; empty if it is."""
    if row.answer == row.rejected:
        return EVEN
    if row.number in seen:
        return SAME
    return CONTRARY if row.label is not None and row.number ^ 1 in seen else ""
