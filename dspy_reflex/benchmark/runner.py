"""Run contenders and baselines on the same labelled rows and report how they did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dspy_reflex.benchmark.baselines.cause import CauseBaseline, cause_baselines
from dspy_reflex.benchmark.baselines.rule import RuleBaseline, rule_baselines
from dspy_reflex.benchmark.predict import (
    Contender,
    Kind,
    cause_answers,
    cause_baseline_answers,
    rule_answers,
    rule_baseline_answers,
)
from dspy_reflex.benchmark.results import (
    AbstainReport,
    CauseReport,
    RuleReport,
    abstain_report,
    cause_report,
    rule_report,
)  # fmt: skip
from dspy_reflex.benchmark.scores import AnswerT, Column
from dspy_reflex.benchmark.trainset import compiled_on, count_seen
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure

Progress = Callable[[int, int], None]
"""Called after each answer with the answers so far and in all."""

ORDER: Sequence[Kind] = ("program", "uncompiled", "baseline")


BaselineT = TypeVar("BaselineT", CauseBaseline, RuleBaseline)


@dataclass
class _Contest(Generic[BaselineT]):
    """Everybody who is asked, what they may have seen before, and how far the asking is."""

    rows: Sequence[LabelledFailure]
    programs: Sequence[Contender]
    baselines: Sequence[BaselineT]
    trainset: Sequence[LabelledFailure]
    allow_seen: bool
    progress: Progress | None
    blameless: bool = False
    """Whether the rows are those that have no root cause."""
    done: int = 0

    def check(self) -> None:
        """Refuse what cannot be compared or would not be honest, before anything is asked or paid for."""
        if not self.rows:
            raise BenchmarkError("there are no rows to benchmark on; name a split that has some")
        if not self.programs and not self.baselines:
            raise BenchmarkError("there is nothing to benchmark; name a program or ask for baselines")
        if self.baselines and not self.trainset:
            raise BenchmarkError("the baselines have no rows to learn from; name some with --trainset")
        for row in (*self.rows, *self.trainset):
            if (row.root_cause is None) != self.blameless:
                has = "a" if self.blameless else "no"
                raise BenchmarkError(
                    f"{row.where or row.id} has {has} root cause; name a split in which every row has one, or none has"
                )
        for one in self.programs:
            self._seen(one.name, compiled_on(one.artifact))

    def columns(
        self, ask: Callable[[Contender], tuple[AnswerT, ...]], consult: Callable[[BaselineT], tuple[AnswerT, ...]]
    ) -> list[Column[AnswerT]]:
        """Everybody's answers: programs first, then the baselines, which learn from the trainset."""
        learnt = self._seen("the baselines' trainset", frozenset(row.row_hash for row in self.trainset))
        for baseline in self.baselines:
            baseline.fit(self.trainset)
        asked = [
            Column(one.name, one.kind, ask(one), self._seen(one.name, compiled_on(one.artifact)))
            for one in self.programs
        ]
        return asked + [Column(one.name, "baseline", consult(one), learnt) for one in self.baselines]

    def tick(self) -> None:
        """One more answer."""
        self.done += 1
        if self.progress:
            self.progress(self.done, (len(self.programs) + len(self.baselines)) * len(self.rows))

    def _seen(self, name: str, known: frozenset[str]) -> int:
        return count_seen(name, known, self.rows, allow_seen=self.allow_seen)


def benchmark_cause(
    rows: Sequence[LabelledFailure],
    programs: Sequence[Contender],
    *,
    trainset: Sequence[LabelledFailure] = (),
    baselines: bool = True,
    by: str | None = None,
    allow_seen: bool = False,
    concurrency: int = 1,
    progress: Progress | None = None,
    dataset: str = "",
) -> CauseReport:
    """Compare root-cause programs with each other and with the baselines.

    Args:
        rows: Labelled failures that no contender was made with.
        programs: Programs to ask; the uncompiled ones are reported after the others.
        trainset: What the baselines learn from.
        baselines: Whether to have them.
        by: A field (`source`, `family`, `severity`, or any of the file) for a table per value.
        allow_seen: Report rows that a contender was made with instead of refusing them.
        concurrency: Questions at a time; for models that are waited for.
        progress: Told after each answer.
        dataset: What the report calls the rows.

    Raises:
        BenchmarkError: The comparison would not be honest, or there is nothing to compare.
        ModelUnavailableError: A model could not be reached; nothing is scored then.
    """
    ordered = _ordered(programs, "root_cause")
    labels = _labels(ordered, [*rows, *trainset])
    contest = _Contest(rows, ordered, cause_baselines(labels) if baselines else [], trainset, allow_seen, progress)
    contest.check()
    columns = contest.columns(
        lambda one: cause_answers(one, rows, concurrency, contest.tick),
        lambda one: cause_baseline_answers(one, rows, contest.tick),
    )
    return cause_report(dataset, rows, labels, columns, by)


def benchmark_abstention(
    rows: Sequence[LabelledFailure],
    programs: Sequence[Contender],
    *,
    allow_seen: bool = False,
    concurrency: int = 1,
    progress: Progress | None = None,
    dataset: str = "",
) -> AbstainReport:
    """Count how often root-cause programs ask for a person, on failures that nothing should be blamed for.

    There are no baselines: none of them ever asks. Arguments and errors as in `benchmark_cause`.
    """
    ordered = _ordered(programs, "root_cause")
    contest: _Contest[CauseBaseline] = _Contest(rows, ordered, [], (), allow_seen, progress, blameless=True)
    contest.check()
    columns = contest.columns(lambda one: cause_answers(one, rows, concurrency, contest.tick), lambda _: ())
    return abstain_report(dataset, rows, columns)


def benchmark_rule(
    rows: Sequence[LabelledFailure],
    programs: Sequence[Contender],
    *,
    trainset: Sequence[LabelledFailure] = (),
    baselines: bool = True,
    by: str | None = None,
    allow_seen: bool = False,
    concurrency: int = 1,
    progress: Progress | None = None,
    dataset: str = "",
) -> RuleReport:
    """Compare rule programs with each other and with the baselines; arguments and errors as in `benchmark_cause`."""
    ordered = _ordered(programs, "rule")
    contest = _Contest(rows, ordered, rule_baselines() if baselines else [], trainset, allow_seen, progress)
    contest.check()
    columns = contest.columns(
        lambda one: rule_answers(one, rows, concurrency, contest.tick),
        lambda one: rule_baseline_answers(one, rows, contest.tick),
    )
    return rule_report(dataset, rows, columns, by)


def _ordered(programs: Sequence[Contender], program: str) -> list[Contender]:
    for one in programs:
        if one.artifact.program != program:
            raise BenchmarkError(f"{one.name} is a {one.artifact.program} program; give a {program} program")
    names = [one.name for one in programs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BenchmarkError(f"{twice[0]} was given twice; give each program once")
    return sorted(programs, key=lambda one: ORDER.index(one.kind))


def _labels(programs: Sequence[Contender], rows: Sequence[LabelledFailure]) -> tuple[str, ...]:
    """The label set of the contest: the programs', which must agree and must know every gold label."""
    gold = {str(row.root_cause) for row in rows if row.root_cause is not None}
    sets = {one.artifact.labels: one.name for one in programs}
    if len(sets) > 1:
        raise BenchmarkError(f"{' and '.join(sets.values())} have different label sets; benchmark them one by one")
    labels = next(iter(sets), tuple(sorted(gold)))
    if unknown := sorted(gold - set(labels)):
        raise BenchmarkError(
            f"{next(iter(sets.values()))} does not know {', '.join(unknown)}; use one that was made for these labels"
        )
    return labels
