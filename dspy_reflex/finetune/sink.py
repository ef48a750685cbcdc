"""Files of rows that grow as rows come, JSON Lines or Parquet, with their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import orjson

from dspy_reflex.errors import MissingExtraError

BUFFER_BYTES = 1 << 17
ROWS_AT_ONCE = 5000


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
            arrow: Any = import_module("pyarrow")
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise MissingExtraError("--format parquet", "compile") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        turn = arrow.struct([("role", arrow.string()), ("content", arrow.string()), ("reward", arrow.float64())])
        sides = [(name, arrow.list_(turn)) for name in ("prompt", "answer", "rejected")]
        self._schema = arrow.schema([*sides, ("label", arrow.bool_())])
        self._table = arrow.Table
        self._writer = parquet.ParquetWriter(path, self._schema)
        self._rows: list[Mapping[str, Any]] = []

    def put(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


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
