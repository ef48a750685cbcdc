"""Labelled failures to files: one JSON object a line, the same keys in every row, and a manifest of what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dspy_reflex.evalset.labelled import LABEL_FIELDS, LabelledFailure
from dspy_reflex.files import write_atomic

MANIFEST = "manifest.json"
"""Beside the splits: how many rows each has, and the SHA-256 of its file."""
FAILURE_FIELDS = ("id", "agent_id", "task", "expected_outcome", "actual_outcome", "severity", "context")


def to_object(row: LabelledFailure) -> dict[str, Any]:
    """A row as a file has it: the failure, the label, then whatever else the row came with.

    Reading it back gives an equal row.
    """
    failure = row.failure.model_dump(mode="json", exclude={"schema_version"})
    label = row.model_dump(mode="json", include=set(LABEL_FIELDS))
    known = {name: failure.pop(name) for name in FAILURE_FIELDS}
    return known | {name: label[name] for name in LABEL_FIELDS} | failure


def to_lines(objects: Iterable[Mapping[str, Any]]) -> bytes:
    """JSON Lines, in UTF-8."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects).encode()


def write_splits(folder: Path, splits: Mapping[str, Sequence[LabelledFailure]]) -> None:
    """Write `<split>.jsonl` for each split, and the manifest last: a folder that has one is whole.

    Raises:
        OSError: A file cannot be written.
    """
    contents = {name: to_lines(map(to_object, rows)) for name, rows in splits.items()}
    for name, content in contents.items():
        write_atomic(folder / f"{name}.jsonl", content)
    listed = {name: {"rows": len(splits[name]), "sha256": _digest(content)} for name, content in contents.items()}
    write_atomic(folder / MANIFEST, (json.dumps({"splits": listed}, indent=1) + "\n").encode())


def changed_splits(folder: Path) -> list[str]:
    """The splits that are not what the manifest says, or that only one of the two has; empty without a manifest."""
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["splits"]
        wanted = {name: entry["sha256"] for name, entry in listed.items()}
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError):
        return [MANIFEST]
    there = {file.stem: _digest(file.read_bytes()) for file in folder.glob("*.jsonl")}
    return sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
