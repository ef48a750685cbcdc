"""Rows and files for the tests of the eval set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.taxonomy import RootCause, Taxonomy

COLOURS = Taxonomy(
    name="colours", causes=tuple(RootCause(name=name, definition=f"it is {name}") for name in ("red", "green", "blue"))
)


def raw(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A row as a file has it."""
    return {"id": f"f{number}", "task": f"task {number}", "actual_outcome": "no", "root_cause": "red", **fields}


def row(number: int, cause: str | None = "red", **fields: Any) -> LabelledFailure:
    """A row as the package has it."""
    failure = Failure(id=f"f{number}", task=f"task {number}", actual_outcome="no")
    return LabelledFailure(failure=failure, root_cause=cause, **fields)


def write(path: Path, *rows: Any) -> Path:
    """A JSON Lines file of these rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in rows), encoding="utf-8")
    return path
