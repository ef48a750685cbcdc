"""What a benchmark found: frozen, with tables per value of a field, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dspy_reflex.benchmark.predict import CauseAnswer, RuleProposed
from dspy_reflex.benchmark.scores import (
    AbstainRow,
    AnswerT,
    CauseRow,
    Column,
    RuleRow,
    abstain_rows,
    cause_rows,
    rule_rows,
    to_json,
)  # fmt: skip
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure

NO_VALUE = "(none)"
"""Stands for rows that lack the field that a table is made by."""


@dataclass(frozen=True)
class Slice:
    """The rows with one value of a field, scored by themselves."""

    value: str
    n: int
    rows: tuple[CauseRow, ...] | tuple[RuleRow, ...]


@dataclass(frozen=True)
class CauseReport:
    """A benchmark of root causes."""

    dataset: str
    n: int
    units: int
    """How many families or groups the rows come from: what the intervals rest on."""
    labels: tuple[str, ...]
    rows: tuple[CauseRow, ...]
    by: str | None
    slices: tuple[Slice, ...]
    cases: tuple[LabelledFailure, ...]
    """The failures asked about."""
    columns: tuple[Column[CauseAnswer], ...]
    """Every answer, by contender."""

    def to_json(self) -> dict[str, Any]:
        """Scores as plain JSON types; no failure text, no single answers."""
        return {**_json(self), "labels": list(self.labels)}


@dataclass(frozen=True)
class RuleReport:
    """A benchmark of rules."""

    dataset: str
    n: int
    units: int
    """How many families or groups the rows come from: what the intervals rest on."""
    rows: tuple[RuleRow, ...]
    by: str | None
    slices: tuple[Slice, ...]
    cases: tuple[LabelledFailure, ...]
    """The failures asked about."""
    columns: tuple[Column[RuleProposed], ...]
    """Every answer, by contender."""

    def to_json(self) -> dict[str, Any]:
        """Scores as plain JSON types; no failure text, no single answers."""
        return _json(self)


@dataclass(frozen=True)
class AbstainReport:
    """A benchmark on failures that nothing should be blamed for: undecidable ones, or none at all."""

    dataset: str
    n: int
    units: int
    rows: tuple[AbstainRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Scores as plain JSON types."""
        return {
            "dataset": self.dataset,
            "n": self.n,
            "units": self.units,
            "rows": [to_json(row) for row in self.rows],
        }


def abstain_report(
    dataset: str, cases: Sequence[LabelledFailure], columns: Sequence[Column[CauseAnswer]]
) -> AbstainReport:
    """Score answers to failures without a root cause."""
    return AbstainReport(dataset, len(cases), len({case.unit for case in cases}), abstain_rows(columns, cases))


def cause_report(
    dataset: str,
    cases: Sequence[LabelledFailure],
    labels: Sequence[str],
    columns: Sequence[Column[CauseAnswer]],
    by: str | None,
) -> CauseReport:
    """Score answers, all together and by the values of a field."""
    slices = [
        Slice(
            value, len(places), cause_rows([_cut(column, places) for column in columns], _take(cases, places), labels)
        )
        for value, places in _places(cases, by)
    ]
    units = len({case.unit for case in cases})
    rows = cause_rows(columns, cases, labels)
    return CauseReport(dataset, len(cases), units, tuple(labels), rows, by, tuple(slices), tuple(cases), tuple(columns))


def rule_report(
    dataset: str, cases: Sequence[LabelledFailure], columns: Sequence[Column[RuleProposed]], by: str | None
) -> RuleReport:
    """Score answers, all together and by the values of a field."""
    slices = [
        Slice(value, len(places), rule_rows([_cut(column, places) for column in columns], _take(cases, places)))
        for value, places in _places(cases, by)
    ]
    units = len({case.unit for case in cases})
    rows = rule_rows(columns, cases)
    return RuleReport(dataset, len(cases), units, rows, by, tuple(slices), tuple(cases), tuple(columns))


def pool(reports: Sequence[CauseReport], dataset: str = "") -> CauseReport:
    """One report over the answers of several, as from leaving out one source in turn.

    Contenders are matched by name; the reports must have the same ones, and no failure twice.

    Raises:
        BenchmarkError: They do not.
    """
    if not reports:
        raise BenchmarkError("there are no reports to pool")
    cases = [case for report in reports for case in report.cases]
    hashes = [{case.row_hash for case in report.cases} for report in reports]
    if sum(map(len, hashes)) > len(set[str]().union(*hashes)):
        raise BenchmarkError("the reports share failures; pool reports on different rows")
    first = reports[0]
    for report in reports:
        if [(c.name, c.kind) for c in report.columns] != [(c.name, c.kind) for c in first.columns]:
            raise BenchmarkError("the reports have different contenders; give each of them the same name everywhere")
        if report.labels != first.labels:
            raise BenchmarkError("the reports have different label sets and cannot be pooled")
    columns = [_pooled([report.columns[index] for report in reports]) for index in range(len(first.columns))]
    return cause_report(dataset or first.dataset, cases, first.labels, columns, first.by)


def _pooled(columns: Sequence[Column[CauseAnswer]]) -> Column[CauseAnswer]:
    answers = tuple(answer for column in columns for answer in column.answers)
    return Column(columns[0].name, columns[0].kind, answers, sum(column.seen for column in columns))


def _places(cases: Sequence[LabelledFailure], by: str | None) -> list[tuple[str, list[int]]]:
    """The values of a field, sorted, with the places of their rows."""
    if by is None:
        return []
    values = [_text(case, by) for case in cases]
    if set(values) == {NO_VALUE}:
        raise BenchmarkError(f"no row has a field {by!r} to make tables by")
    return [(value, [place for place, other in enumerate(values) if other == value]) for value in sorted(set(values))]


def _text(case: LabelledFailure, field: str) -> str:
    value = case.value(field)
    return NO_VALUE if value is None else str(value)


def _cut(column: Column[AnswerT], places: list[int]) -> Column[AnswerT]:
    """The answers to some of the rows. How many of those were seen is said once, for all rows."""
    return Column(column.name, column.kind, tuple(column.answers[place] for place in places), column.seen)


def _take(cases: Sequence[LabelledFailure], places: list[int]) -> list[LabelledFailure]:
    return [cases[place] for place in places]


def _json(report: CauseReport | RuleReport) -> dict[str, Any]:
    tables = [{"value": part.value, "n": part.n, "rows": [to_json(row) for row in part.rows]} for part in report.slices]
    return {
        "dataset": report.dataset,
        "n": report.n,
        "units": report.units,
        "rows": [to_json(row) for row in report.rows],
        "by": {"field": report.by, "values": tables} if report.by else None,
    }
