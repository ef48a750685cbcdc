"""The formats that can be imported. One entry is one function; a new format is a file here and a line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dspy_reflex.errors import ConfigError, DatasetError
from dspy_reflex.evalset.importers.agenterrorbench import import_agenterrorbench
from dspy_reflex.evalset.importers.agentrx import import_agentrx
from dspy_reflex.evalset.importers.imported import Gathering, Imported
from dspy_reflex.evalset.importers.mast import import_mast
from dspy_reflex.evalset.importers.reading import Record, read_records
from dspy_reflex.evalset.importers.table import Columns, import_table
from dspy_reflex.evalset.importers.trail import import_trail
from dspy_reflex.evalset.importers.whowhen import import_whowhen
from dspy_reflex.evalset.problems import Problems

Importer = Callable[[Sequence[Record], Gathering], None]
"""Turns records into rows, one by one; notes what cannot be used and counts what gives no row."""

TABLE = "table"
IMPORTERS: Mapping[str, Importer] = {
    "whowhen": import_whowhen,
    "trail": import_trail,
    "mast": import_mast,
    "agentrx": import_agentrx,
    "agenterrorbench": import_agenterrorbench,
}
FORMATS = (*IMPORTERS, TABLE)


def import_failures(
    name: str, path: str, *, columns: Columns | None = None, skipped: Problems | None = None
) -> Imported:
    """Import a data set.

    Args:
        name: Its format, one of `FORMATS`.
        path: The file or folder as published, or `hf:owner/name[:split]`.
        columns: For a table, the column of each field.
        skipped: Where records that cannot be used are noted, to go on with the others; without it they are an error.

    Raises:
        ConfigError: There is no such format, or the columns do not fit it.
        DatasetError: It is missing or cannot be used; names file, line and field of every problem.
        MissingExtraError: It needs packages of the extra [compile].
    """
    importer = _importer(name, columns or {})
    problems = Problems() if skipped is None else skipped
    into = Gathering(problems)
    importer(read_records(path, problems), into)
    if skipped is None:
        problems.raise_if_any()
    found = into.done()
    if not found.rows:
        reasons = ", ".join(f"{reason} {count}" for reason, count in found.skipped.items())
        raise DatasetError(f"{path}: it gives no row ({reasons or 'it is empty'}); is it really {name}?")
    return found


def _importer(name: str, columns: Columns) -> Importer:
    if name == TABLE:
        return partial(import_table, columns=columns)
    if name not in IMPORTERS:
        raise ConfigError(f"{name!r} is no format; the formats are {', '.join(FORMATS)}")
    if columns:
        raise ConfigError(f"columns are mapped for a {TABLE} only; {name} has its own")
    return IMPORTERS[name]
