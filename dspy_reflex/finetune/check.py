"""Look at a file of rows as their format wants them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from dspy_reflex.errors import ExportError, MissingExtraError
from dspy_reflex.finetune.formats.base import Format


def check(file: Path, form: Format) -> tuple[int, list[str]]:
    """What a trainer would not take.

    Returns:
        How many rows there are, and what is wrong, each with file and line, or with the row's number in a Parquet file.

    Raises:
        ExportError: The file cannot be read.
        MissingExtraError: It is a Parquet file and pyarrow is not installed.
    """
    problems: list[str] = []
    number = 0
    try:
        for number, (row, wrong) in enumerate(_rows(file), 1):
            why = wrong or form.problem(row)
            problems += [f"{file}:{number}: {why}"] if why else []
    except OSError as error:
        raise ExportError(f"{file}: cannot be read: {error.strerror or error}; give one file of an export") from error
    return number, problems


def _rows(file: Path) -> Iterator[tuple[Any, str]]:
    """Each row, or what keeps it from being one."""
    if file.suffix == ".parquet":
        yield from ((row, "") for row in _parquet(file))
        return
    with file.open("rb") as lines:
        for line in lines:
            try:
                yield orjson.loads(line), ""
            except orjson.JSONDecodeError as error:
                yield None, f"not JSON: {error}"


def _parquet(file: Path) -> Iterator[Any]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
        broken: Any = import_module("pyarrow").ArrowInvalid
    except ImportError:
        raise MissingExtraError("checking a Parquet file", "compile") from None
    try:
        for batch in parquet.ParquetFile(file).iter_batches():
            yield from batch.to_pylist()
    except broken as error:
        raise ExportError(f"{file}: is no Parquet file: {error}; give one file of an export") from error
