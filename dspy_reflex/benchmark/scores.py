"""From answers to the rows of a table, for root causes and for rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.confidence import ConfidenceScore, confidence_score
from dspy_reflex.benchmark.predict import CauseAnswer, Kind, RuleProposed
from dspy_reflex.benchmark.rule_score import PARTS
from dspy_reflex.benchmark.statistics import ClassScore, Interval
from dspy_reflex.evalset.labelled import LabelledFailure

AnswerT = TypeVar("AnswerT", CauseAnswer, RuleProposed)


@dataclass(frozen=True)
class Column(Generic[AnswerT]):
    """What one contender answered, one answer a row of the data set."""

    name: str
    kind: Kind
    answers: tuple[AnswerT, ...]
    seen: int = 0
    """How many of the rows it was made with; more than 0 only with `allow_seen`."""


@dataclass(frozen=True)
class Versus:
    """A row minus the first row."""

    difference: float
    """Of macro-F1, or of the rule score."""
    interval: Interval
    """Paired bootstrap, over units."""
    mcnemar_p: float | None = None
    """Exact, two-sided, on accuracy; None for rules, which are not right or wrong."""


@dataclass(frozen=True)
class CauseRow:
    """How one contender did on root causes. Refusals and unparsable answers are misses."""

    name: str
    kind: Kind
    accuracy: float
    macro_f1: float
    """Over the labels that occur in the gold."""
    interval: Interval
    """Of macro-F1: 95 %, bootstrap over units."""
    accuracy_interval: Interval
    n: int
    per_class: tuple[ClassScore, ...]
    hit_rate: float
    """Share of answers that some careful reader would accept."""
    confidence: ConfidenceScore | None
    """None if no answer came with a confidence."""
    needs_review: float
    """Share that a person is asked about. A baseline never asks."""
    accuracy_unasked: float | None
    """Share right of those that nobody is asked about; None if there are none."""
    refusals: int
    unparsable: int
    seconds_per_failure: float
    calls_per_failure: float
    vs_first: Versus | None
    """None for the first row."""
    seen: int


@dataclass(frozen=True)
class AbstainRow:
    """How often one contender blames nothing, on failures that nothing should be blamed for."""

    name: str
    kind: Kind
    needs_review: float
    """Share that a person is asked about: right, every time."""
    interval: Interval
    n: int
    refusals: int
    unparsable: int
    seconds_per_failure: float
    calls_per_failure: float
    seen: int


@dataclass(frozen=True)
class PartScore:
    """One part of the rule metric, over the rows that have an answer for it."""

    score: float
    interval: Interval
    n: int


@dataclass(frozen=True)
class RuleRow:
    """How one contender did on rules. Refusals and unparsable answers score 0."""

    name: str
    kind: Kind
    score: float
    interval: Interval
    parts: dict[str, PartScore]
    n: int
    refusals: int
    unparsable: int
    seconds_per_failure: float
    calls_per_failure: float
    vs_first: Versus | None
    """None for the first row."""
    seen: int


def cause_rows(
    columns: Sequence[Column[CauseAnswer]], rows: Sequence[LabelledFailure], labels: Sequence[str]
) -> tuple[CauseRow, ...]:
    """A row for each contender, in the same order."""
    return tuple(_cause_row(column, columns[0], rows, labels) for column in columns)


def abstain_rows(columns: Sequence[Column[CauseAnswer]], rows: Sequence[LabelledFailure]) -> tuple[AbstainRow, ...]:
    """A row for each contender, in the same order."""
    units = [row.unit for row in rows]
    return tuple(
        AbstainRow(
            name=column.name,
            kind=column.kind,
            needs_review=_asked(column),
            interval=statistics.mean_interval([float(answer.needs_review) for answer in column.answers], units),
            **_costs(column),
        )
        for column in columns
    )


def rule_rows(columns: Sequence[Column[RuleProposed]], rows: Sequence[LabelledFailure]) -> tuple[RuleRow, ...]:
    """A row for each contender, in the same order."""
    return tuple(_rule_row(column, columns[0], rows) for column in columns)


def to_json(row: CauseRow | RuleRow | AbstainRow) -> dict[str, Any]:
    """A row as plain JSON types."""
    return json.loads(json.dumps(asdict(row)))


def _cause_row(
    column: Column[CauseAnswer], first: Column[CauseAnswer], rows: Sequence[LabelledFailure], labels: Sequence[str]
) -> CauseRow:
    gold, units = [str(row.root_cause) for row in rows], [row.unit for row in rows]
    answers = [answer.label for answer in column.answers]
    right = [one == other for one, other in zip(gold, answers, strict=True)]
    return CauseRow(
        name=column.name,
        kind=column.kind,
        accuracy=statistics.accuracy(gold, answers),
        macro_f1=statistics.macro_f1(gold, answers),
        interval=statistics.interval(gold, answers, units),
        accuracy_interval=statistics.mean_interval([float(hit) for hit in right], units),
        per_class=statistics.per_class(gold, answers, labels),
        hit_rate=statistics.hit_rate(gold, [row.also_acceptable for row in rows], answers),
        confidence=confidence_score(column.answers, right, units),
        needs_review=_asked(column),
        accuracy_unasked=_unasked(column, right),
        vs_first=None if column is first else _versus(gold, units, answers, [answer.label for answer in first.answers]),
        **_costs(column),
    )


def _asked(column: Column[CauseAnswer]) -> float:
    return sum(answer.needs_review for answer in column.answers) / len(column.answers)


def _unasked(column: Column[CauseAnswer], right: Sequence[bool]) -> float | None:
    hits = [hit for answer, hit in zip(column.answers, right, strict=True) if not answer.needs_review]
    return sum(hits) / len(hits) if hits else None


def _versus(gold: list[str], units: list[str], answers: list[str | None], first: list[str | None]) -> Versus:
    difference = statistics.macro_f1(gold, answers) - statistics.macro_f1(gold, first)
    right = [[one == other for one, other in zip(gold, told, strict=True)] for told in (answers, first)]
    interval = statistics.difference_interval(gold, answers, first, units)
    return Versus(difference, interval, statistics.mcnemar(*right))


def _rule_row(column: Column[RuleProposed], first: Column[RuleProposed], rows: Sequence[LabelledFailure]) -> RuleRow:
    units = [row.unit for row in rows]
    totals = [answer.score.total for answer in column.answers]
    parts = {name: _part(name, column, units) for name in PARTS}
    return RuleRow(
        name=column.name,
        kind=column.kind,
        score=sum(totals) / len(totals),
        interval=statistics.mean_interval(totals, units),
        parts={name: part for name, part in parts.items() if part is not None},
        vs_first=None if column is first else _rule_versus(totals, first, units),
        **_costs(column),
    )


def _part(name: str, column: Column[RuleProposed], units: list[str]) -> PartScore | None:
    scored = [
        (part.score, unit)
        for answer, unit in zip(column.answers, units, strict=True)
        for part in answer.score.parts
        if part.name == name
    ]
    if not scored:
        return None
    scores, of_units = [score for score, _ in scored], [unit for _, unit in scored]
    return PartScore(sum(scores) / len(scores), statistics.mean_interval(scores, of_units), len(scores))


def _rule_versus(totals: list[float], first: Column[RuleProposed], units: list[str]) -> Versus:
    gaps = [total - answer.score.total for total, answer in zip(totals, first.answers, strict=True)]
    return Versus(sum(gaps) / len(gaps), statistics.mean_difference_interval(gaps, units))


def _costs(column: Column[CauseAnswer] | Column[RuleProposed]) -> dict[str, Any]:
    """The fields that both kinds of row have."""
    n = len(column.answers)
    problems = Counter(answer.problem for answer in column.answers)
    return {
        "n": n,
        "refusals": problems["refusal"],
        "unparsable": problems["unparsable"],
        "seconds_per_failure": sum(answer.seconds for answer in column.answers) / n,
        # A program is one question; retries are the model's own affair.
        "calls_per_failure": 0.0 if column.kind == "baseline" else 1.0,
        "seen": column.seen,
    }
