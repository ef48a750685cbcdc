"""Take a source out of several data sets at once, with everything that would give it away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure


def leave_out(sets: Sequence[EvalSet], pairs: Iterable[tuple[str, str]]) -> list[EvalSet]:
    """Drop rows such as `("source", "trail/gaia")`, and with them every row of any set that shares a `group` with one.

    Splits and sets that lose all their rows go, too.

    Raises:
        DatasetError: No row has such a value, or no row is left.
    """
    kept = list(sets)
    for field, value in pairs:
        kept = _without(kept, field, value)
    return kept


def _without(sets: Sequence[EvalSet], field: str, value: str) -> list[EvalSet]:
    everything = [row for one in sets for rows in one.splits.values() for row in rows]
    gone = [row for row in everything if _text(row, field) == value]
    if not gone:
        there = sorted({_text(row, field) for row in everything} - {""})
        has = f"there is {', '.join(there)}" if there else f"the rows have no {field}"
        raise DatasetError(f"nothing to leave out, no row has {field}={value}; {has}")
    groups = {row.group for row in gone if row.group}
    kept = [_kept(one, field, value, groups) for one in sets]
    if not any(one.splits for one in kept):
        raise DatasetError(f"no row is left without {field}={value}; leave out less")
    return [one for one in kept if one.splits]


def _kept(one: EvalSet, field: str, value: str, groups: set[str]) -> EvalSet:
    splits = {
        name: tuple(row for row in rows if _text(row, field) != value and row.group not in groups)
        for name, rows in one.splits.items()
    }
    return EvalSet(one.name, one.taxonomy, {name: rows for name, rows in splits.items() if rows})


def _text(row: LabelledFailure, field: str) -> str:
    value = row.value(field)
    return "" if value is None else str(value)
