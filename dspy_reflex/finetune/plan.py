"""What an export is to hold, and rows that fit it, one after the other, with what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from dspy_reflex.finetune.guard import Guard, text_of
from dspy_reflex.finetune.material import Decided, Known, decided, known
from dspy_reflex.finetune.row import Row, Split, Task, number_of
from dspy_reflex.finetune.rows.behave import Shares, behave
from dspy_reflex.finetune.rows.classify import classify
from dspy_reflex.finetune.rows.propose import propose
from dspy_reflex.finetune.rows.self_edit import self_edit
from dspy_reflex.finetune.rows.share import falls_in
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.runtime import library
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact

TASKS: tuple[Task, ...] = ("behave", "classify", "propose", "self_edit")
NO_CORRECTION = "failures of approved rules without a correction"
HELD_OUT = "failures that an eval set keeps for measuring"
EVAL_TRAIN = "eval set: train"


@dataclass(frozen=True)
class Plan:
    """What is wanted."""

    tasks: tuple[Task, ...] = TASKS
    since: datetime | None = None
    """Only rules decided on, and failures that happened, since then."""
    rules: tuple[str, ...] | None = None
    """Only these proposals."""
    validation: float = 0.1
    """Share of families for validation, in [0, 1]; of families that began before `validation_from`, none."""
    validation_from: datetime | None = None
    """If given, families that began at this time or later are for validation, and all others for training."""
    shares: Shares = field(default_factory=Shares)


class Source:
    """Rows of a store for a plan; `left_out` counts as they are drawn."""

    def __init__(self, connection: Connection, plan: Plan, guard: Guard) -> None:
        """Read the decided rules; failures with a known cause are read as they are drawn."""
        self.left_out: Counter[str] = Counter()
        self._connection, self._plan, self._guard = connection, plan, guard
        self._began: dict[str, datetime] = {}
        self._marked: set[str] = set()
        self._rules = [self._guarded(one) for one in decided(connection, since=plan.since, rules=plan.rules)]

    @property
    def rules(self) -> list[str]:
        """Ids of the proposals that are taught."""
        return [rule.proposal.id for rule in self._rules if rule.approved]

    def __iter__(self) -> Iterator[Row]:
        """Every row once, with split and id."""
        seen: set[int] = set()
        for row in self._drawn():
            whole = self._placed(row).identified()
            number = number_of(whole.id)
            if number in seen:
                self.left_out["rows that say the same as another"] += 1
            else:
                seen.add(number)
                yield whole

    def _drawn(self) -> Iterator[Row]:
        programs = {name: library.find(name, ANY_MODEL) for name in ("root_cause", "rule")}
        for task in self._plan.tasks:
            yield from self._of(task, programs)

    def _of(self, task: Task, programs: Mapping[str, Artifact]) -> Iterable[Row]:
        match task:
            case "behave":
                return behave(self._rules, self._plan.shares)
            case "classify":
                return classify(self._known(), programs["root_cause"])
            case "propose":
                return propose(self._rules, programs["rule"])
            case "self_edit":
                return self_edit(self._rules)

    def _known(self) -> Iterator[Known]:
        """What a person said of failures; whoever approves a rule stands by the cause it is against."""
        stood_by = {
            case.failure.id: Known(case.failure, case.diagnosis, rule.family)
            for rule in self._rules
            if rule.approved
            for case in rule.cases
            if case.diagnosis and case.diagnosis.root_cause == rule.proposal.proposal.root_cause
        }
        yield from stood_by.values()
        if self._plan.rules is None:
            for one in known(self._connection, since=self._plan.since):
                if one.failure.id not in stood_by and self._may(one.failure):
                    yield one

    def _guarded(self, rule: Decided) -> Decided:
        cases = tuple(case for case in rule.cases if self._may(case.failure))
        if rule.approved:
            self.left_out[NO_CORRECTION] += sum(case.correction is None for case in cases)
            began = min([rule.proposal.at, *(case.failure.at for case in cases)])
            self._began[rule.family] = min(began, self._began.get(rule.family, began))
        return replace(rule, cases=cases)

    def _may(self, failure: LoggedFailure) -> bool:
        text = text_of(failure.model_dump())
        if self._guard.is_held_out(text):
            self.left_out[HELD_OUT] += 1
            return False
        if self._guard.is_known(text):
            self._marked.add(failure.id)
        return True

    def _placed(self, row: Row) -> Row:
        marks = (EVAL_TRAIN,) if row.lineage.failure in self._marked else ()
        return replace(row, split=self._split(row.family), lineage=replace(row.lineage, marked=marks))

    def _split(self, family: str) -> Split:
        plan = self._plan
        if plan.validation_from is not None:
            began = self._began.get(family)
            return "validation" if began and began >= plan.validation_from else "train"
        return "validation" if falls_in(plan.validation, "split", family) else "train"
