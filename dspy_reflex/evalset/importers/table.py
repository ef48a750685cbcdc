"""Any table with one failure a row: CSV, JSON, JSON Lines, a hub data set, or a DataFrame, by a map of its columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from dspy_reflex.errors import ConfigError, DatasetError
from dspy_reflex.evalset.importers.frames import frame_objects
from dspy_reflex.evalset.importers.imported import NOTHING, Gathering, Imported, Row
from dspy_reflex.evalset.importers.reading import Record
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.rows import ADVICE
from dspy_reflex.untrusted import as_text

EXPLANATION = "explanation"
REQUIRED = ("task", "actual_outcome")
TEXTS = ("id", "source", "group", "family", "agent_id", "severity", "task", "expected_outcome", "actual_outcome")
FIELDS = (*TEXTS, "context", "root_cause", "also_acceptable", EXPLANATION)
"""What a column can be mapped to. Columns that nothing is mapped to are left out."""
SAID_BY_ANNOTATORS = ("explanation", "reason", "mistake_reason", "description", "evidence")
"""Columns that are carried apart if nothing else is made of them."""

Columns = Mapping[str, str]
"""Field to column."""


def import_table(records: Sequence[Record], into: Gathering, columns: Columns) -> None:
    """One row a failure. A field that is not in `columns` is the column of its name, if there is one.

    `root_cause` may be a list: its first label is the root cause, the others are also acceptable. Without a column for it
    the rows are unlabelled; with one, rows that have none are left out. A blank `actual_outcome` says that nothing came out.

    Raises:
        ConfigError: The map names a field that does not exist, or makes something else of an explanation.
        DatasetError: A column is not there.
    """
    there = list(dict.fromkeys(column for record in records for column in record.data))
    if not records:
        return
    chosen = _chosen(columns, there)
    for record in records:
        _add(record, chosen, into)


def import_frame(frame: Any, problems: Problems, columns: Columns | None = None) -> Imported:
    """The same of a pandas DataFrame; see `import_table`."""
    into = Gathering(problems)
    records = [Record(where, data, "frame") for where, data in frame_objects(frame, "frame")]
    import_table(records, into, columns or {})
    return into.done()


def _chosen(columns: Columns, there: Sequence[str]) -> dict[str, str]:
    """The column of each field that has one."""
    if unknown := [field for field in columns if field not in FIELDS]:
        raise ConfigError(f"{unknown[0]!r} is no field; the fields are {', '.join(FIELDS)}")
    if missing := [column for column in columns.values() if column not in there]:
        raise DatasetError(f"there is no column {missing[0]!r}; the table has {', '.join(there)}")
    apart = columns.get(EXPLANATION)
    if twice := [field for field, column in columns.items() if column == apart and field != EXPLANATION]:
        raise ConfigError(f"column {apart!r} is an explanation and cannot be {twice[0]}: it would give the label away")
    chosen = {field: field for field in FIELDS if field in there} | dict(columns)
    if lacking := [field for field in REQUIRED if field not in chosen]:
        field = lacking[0]
        raise DatasetError(f"no column is {field}; say which with {field}=COLUMN, the table has {', '.join(there)}")
    return chosen


def _add(record: Record, chosen: Columns, into: Gathering) -> None:
    cells = {field: record.data.get(column) for field, column in chosen.items()}
    if nan := [field for field in REQUIRED if _is_nan(cells[field])]:
        for field in nan:
            into.problems.add(record.where, f"{field} is NaN; {ADVICE[field]}")
        return
    cells = {field: value for field, value in cells.items() if not _is_empty(value)}
    labels = _labels(cells.get("root_cause"))
    if "root_cause" in chosen and not labels:
        into.skip("no label")
        return
    others: list[JsonValue] = [*dict.fromkeys((*labels[1:], *_labels(cells.get("also_acceptable"))))]
    row: Row = {field: as_text(cells[field]) if field in cells else None for field in TEXTS if field in chosen}
    if record.data.get(chosen["actual_outcome"]) is not None:
        row["actual_outcome"] = row["actual_outcome"] or NOTHING
    # Row ids are what explanations hang on.
    row["id"] = row.get("id") or f"{record.name}-{record.where.rpartition(':')[2]}"
    row["context"] = cast(JsonValue, cells.get("context"))
    row["root_cause"] = labels[0] if labels else None
    row["also_acceptable"] = [label for label in others if label not in labels[:1]]
    row["label_native"] = [*labels]
    into.add(record.where, row, _explanation(record, chosen))


def _explanation(record: Record, chosen: Columns) -> str:
    taken = {column for field, column in chosen.items() if field != EXPLANATION}
    columns = [chosen[EXPLANATION]] if EXPLANATION in chosen else []
    columns += [column for column in SAID_BY_ANNOTATORS if column not in (*taken, *columns)]
    return "\n".join(as_text(value) for column in columns if not _is_empty(value := record.data.get(column)))


def _labels(value: object) -> list[str]:
    """One label, or a list of them."""
    items = cast(Sequence[object], value) if isinstance(value, (list, tuple)) else [value]
    return [text for item in items if not _is_empty(item) and (text := as_text(item).strip())]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_empty(value: Any) -> bool:
    return value is None or _is_nan(value) or (isinstance(value, str) and not value.strip())
