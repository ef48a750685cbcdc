"""Files of rows that grow as rows come, JSON Lines or Parquet, with their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import orjson

from dspy_reflex.errors import MissingExtraError

BUFFER_BYTES = 1 << 17
ROWS_AT_ONCE = 5000
SIDES = ("prompt", "answer", "rejected")


class Sink(Protocol):
    """A file that takes rows."""

    def put(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class JsonLines:
    """One JSON object a line."""

    def __init__(self, path: Path) -> None:
        """Begin a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb", buffering=BUFFER_BYTES)

    def put(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self._file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


class Parquet:
    """Row groups of some thousand rows. The same rows give the same bytes with the same version of pyarrow."""

    def __init__(self, path: Path) -> None:
        """Begin a file.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        try:
            self._arrow: Any = import_module("pyarrow")
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise MissingExtraError("--format parquet", "compile") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        text, number = self._arrow.string(), self._arrow.float64()
        self._turn = self._arrow.struct([("role", text), ("content", text), ("reward", number)])
        sides = [(name, self._arrow.list_(self._turn)) for name in SIDES]
        self._schema = self._arrow.schema([*sides, ("label", self._arrow.bool_())])
        self._writer = parquet.ParquetWriter(path, self._schema)
        self._begin()

    def put(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        for name, turns in self._sides.items():
            turns.add(row[name])
        self._labels.append(row["label"])
        if len(self._labels) >= ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def _begin(self) -> None:
        self._sides = {name: _Turns() for name in SIDES}
        self._labels: list[bool | None] = []

    def _flush(self) -> None:
        if self._labels:
            sides = [turns.laid_out(self._arrow, self._turn) for turns in self._sides.values()]
            columns = [*sides, self._arrow.array(self._labels, self._arrow.bool_())]
            self._writer.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema))
            self._begin()


class _Turns:
    """The turns of many rows, in columns: thousands of waiting mappings would keep the garbage collector busy."""

    def __init__(self) -> None:
        self._ends = [0]
        self._columns: dict[str, list[Any]] = {"role": [], "content": [], "reward": []}

    def add(self, turns: Sequence[Mapping[str, Any]]) -> None:
        """Those of one more row."""
        for one in turns:
            for name, column in self._columns.items():
                column.append(one[name])
        self._ends.append(self._ends[-1] + len(turns))

    def laid_out(self, arrow: Any, turn: Any) -> Any:
        """All as an Arrow array of lists."""
        columns = [arrow.array(column, turn.field(name).type) for name, column in self._columns.items()]
        turns = arrow.StructArray.from_arrays(columns, fields=list(turn))
        return arrow.ListArray.from_arrays(arrow.array(self._ends, arrow.int32()), turns)


class Nowhere:
    """Takes rows and keeps none, for counting."""

    def put(self, row: Mapping[str, Any]) -> None:
        """Let a row go."""

    def close(self) -> None:
        """Nothing is left."""


def sink_for(path: Path) -> Sink:
    """A new file of the kind that its name says."""
    return Parquet(path) if path.suffix == ".parquet" else JsonLines(path)


def sha256_of(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
