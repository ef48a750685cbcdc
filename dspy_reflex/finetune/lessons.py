"""Rules of a store that a plan wants, with those of their failures that may be taught from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import chain, islice

from sqlalchemy import Connection

from dspy_reflex.finetune import material
from dspy_reflex.finetune.families import Families
from dspy_reflex.finetune.guard import Guard, text_of
from dspy_reflex.finetune.material import Case, Correction, Decided
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Split
from dspy_reflex.finetune.rows.share import falls_in
from dspy_reflex.records.diagnosis import PERSON
from dspy_reflex.runtime.inputs import MAX_FAILURES
from dspy_reflex.store import behind, proposals

EVAL_TRAIN = "eval set: train"
HELD_OUT = "failures and rules that an eval set keeps for measuring"
BY_POLICY = "rules that a policy decided on, and no person"
OTHER_CAUSE = "failures that a person gave another cause than their rule has"


class Lessons:
    """What there is to teach. Reasons for leaving something out are counted as it is come across."""

    def __init__(self, connection: Connection, plan: Plan, guard: Guard, left_out: Counter[str]) -> None:
        """Read the rules; failures are read as they are asked for.

        Raises:
            StoreError: There is no proposal that the plan names.
        """
        self._connection, self._plan, self._guard, self._left_out = connection, plan, guard, left_out
        self._refused: set[str] = set()
        self._last: tuple[str | None, Split] = None, "train"  # rows of a family come one after the other
        self._firsts: dict[str, tuple[Case, Correction] | None] = {}
        found = material.decided(connection)
        self.approved = frozenset(one.id for one in found if one.approved)
        """All rules of the store that may be taught, wanted or not."""
        began = behind.began(connection) if isinstance(plan.split, datetime) else {}
        self._families = Families([one.proposal for one in found], behind.signatures(connection), began)
        named = None if plan.rules is None else {proposals.get(connection, one).id for one in plan.rules}
        wanted = (one for one in found if named is None or one.id in named)
        self._rules = [rule for rule in map(self._looked_at, wanted) if rule]

    @cached_property
    def taught(self) -> list[Decided]:
        """Approved rules, oldest first."""
        return [rule for rule in self._rules if rule.approved]

    @cached_property
    def refused(self) -> dict[str, list[Decided]]:
        """Rejected rules of which a failure is still there, by what they are against, oldest first."""
        found: dict[str, list[Decided]] = {}
        for rule in self._rules:
            if not rule.approved and self.shown(rule):
                found.setdefault(rule.mechanism, []).append(rule)
        return found

    @cached_property
    def others(self) -> dict[str, Decided]:
        """For each corrected rule the next one of the same split that is against something else."""
        found: dict[str, Decided] = {}
        by_split: dict[Split, list[Decided]] = {}
        for rule in self.taught:
            if self.first(rule):
                by_split.setdefault(self.split(rule.family), []).append(rule)
        for there in by_split.values():
            for place, rule in enumerate(there):
                after = chain(there[place + 1 :], there[:place])
                other = next((one for one in after if one.against != rule.against), None)
                found.update({rule.id: other} if other else {})
        return found

    def cases(self, rule: Decided, *, at_once: int = material.AT_ONCE) -> Iterator[Case]:
        """Those of a rule's failures that may be taught from; so many are read at a time."""
        for case in self._allowed(material.cases(self._connection, rule, at_once=at_once)):
            said = case.diagnosis
            if said and said.program == PERSON and said.root_cause != rule.proposal.proposal.root_cause:
                self._refuse(case, OTHER_CAUSE)
            else:
                yield case

    def shown(self, rule: Decided) -> tuple[Case, ...]:
        """The failures that a rule is to be proposed from: as many as the program is shown."""
        return tuple(islice(self.cases(rule, at_once=MAX_FAILURES), MAX_FAILURES))

    def first(self, rule: Decided) -> tuple[Case, Correction] | None:
        """The first corrected failure of a rule; None if there is none, or none any more."""
        if rule.id not in self._firsts:
            found = self.cases(rule, at_once=MAX_FAILURES)
            self._firsts[rule.id] = next(((one, one.correction) for one in found if one.correction), None)
        return self._firsts[rule.id]

    def known(self) -> Iterator[Case]:
        """Failures whose cause a person named."""
        return self._allowed(material.known(self._connection, since=self._plan.since))

    def family_of(self, signature: str) -> str:
        """What is learned together with failures that read like this."""
        return self._families.of_signature(signature)

    def split(self, family: str) -> Split:
        """Where the rows of a family go."""
        if family != self._last[0]:
            self._last = family, self._split(family)
        return self._last[1]

    def _split(self, family: str) -> Split:
        split = self._plan.split
        if isinstance(split, datetime):
            began = self._families.began(family)
            return "validation" if began and began >= split else "train"
        return "validation" if falls_in(split, "split", family) else "train"

    def _allowed(self, found: Iterable[Case]) -> Iterator[Case]:
        for case in found:
            said = case.correction.turns if case.correction else ()
            told = text_of(case.failure.task, case.failure.actual_outcome, case.had)
            seen = self._guard.seen(told, *(turn.content for turn in said))
            if seen == "held out":
                self._refuse(case, HELD_OUT)
            else:
                yield replace(case, marked=(EVAL_TRAIN,)) if seen == "train" else case

    def _refuse(self, case: Case, why: str) -> None:
        """Count a failure once, however often it is come across."""
        if case.failure.id not in self._refused:
            self._refused.add(case.failure.id)
            self._left_out[why] += 1

    def _looked_at(self, rule: Decided) -> Decided | None:
        """The rule with its family and marks; None if it is not wanted, or may not be taught."""
        since, review, made = self._plan.since, rule.review, rule.proposal.proposal
        if since and not (review and review.at >= since):
            return None
        seen = self._guard.seen(rule.text, made.rule, made.rationale)
        if why := BY_POLICY if review and review.policy else HELD_OUT if seen == "held out" else "":
            self._left_out[why] += 1
            return None
        marked = (EVAL_TRAIN,) if seen == "train" else ()
        return replace(rule, family=self._families.of_rule(rule.proposal), marked=marked)
