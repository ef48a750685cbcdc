"""Rows as tables of pandas and of Hugging Face's `datasets`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.finetune.formats.base import Said
from dspy_reflex.finetune.formats.parquet import FORMAT as PARQUET
from dspy_reflex.finetune.row import Lineage, Row


@dataclass(frozen=True)
class TrainingRows:
    """Rows in memory."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        """How many."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        """One by one."""
        return iter(self.rows)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`: id, kind, task, split, prompt, answer, rejected, label, lineage.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return _imported("pandas", "to_pandas").DataFrame(self._plain())

    def to_hf(self) -> Any:
        """A `datasets.Dataset` of the same columns.

        Raises:
            MissingExtraError: `datasets` is not installed.
        """
        return _imported("datasets", "to_hf").Dataset.from_list(self._plain())

    def _plain(self) -> list[dict[str, Any]]:
        return [_plain(row) for row in self.rows]


def _plain(row: Row) -> dict[str, Any]:
    said = Said(row.prompt, row.answer, row.rejected, row.label)
    lineage = {name: [*one] if isinstance(one, tuple) else one for name, one in _fields(row.lineage)}
    place = {"id": row.id, "kind": row.kind, "task": row.task, "split": row.split}
    return {**place, **PARQUET.shapes[row.kind].write(said), "lineage": lineage}


def _fields(lineage: Lineage) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    return ((one.name, getattr(lineage, one.name)) for one in fields(lineage))


def _imported(package: str, what: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(f"{what}()", "compile") from None
