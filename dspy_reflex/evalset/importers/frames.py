"""CSV files and pandas DataFrames to objects; pandas is imported late."""

from __future__ import annotations

import io
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.problems import Problems

HEADER_LINES = 1
Objects = list[tuple[str, dict[str, Any]]]


def csv_objects(content: bytes, file: str, problems: Problems) -> Objects:
    """Place and cells of each row of a CSV file: text, empty text, or NaN where the file says so.

    A row is named by the line it stands on if no cell above it has line breaks.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    pandas = _pandas()
    try:
        table = pandas.read_csv(
            io.BytesIO(content), dtype=str, keep_default_na=False, na_values=["NaN", "nan"], encoding="utf-8-sig"
        )
    except UnicodeDecodeError as error:
        problems.add(f"{file}:1", f"not UTF-8 ({error.reason}); save the file as UTF-8")
        return []
    except ValueError as error:  # pandas' own errors are ValueErrors
        problems.add(f"{file}:1", f"not CSV ({str(error).strip()}); write a header line and one row a failure")
        return []
    return frame_objects(table, file, first=HEADER_LINES + 1)


def frame_objects(frame: Any, name: str, first: int = 1) -> Objects:
    """Place and cells of each row of a pandas DataFrame; whatever pandas takes for missing is NaN."""
    pandas = _pandas()
    rows: list[dict[str, Any]] = frame.to_dict("records")
    missing: Any = pandas.isna
    return [
        (f"{name}:{number}", {str(key): _cell(value, missing) for key, value in row.items()})
        for number, row in enumerate(rows, start=first)
    ]


def _cell(value: Any, missing: Any) -> Any:
    # Of a list pandas says item by item what is missing.
    return float("nan") if missing(value) is True else value


def _pandas() -> Any:
    try:
        import pandas  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("reading a table", "compile") from None
    return pandas
