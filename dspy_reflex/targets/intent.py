"""What a patch is about to do to files, as it is kept on disk while it does it: JSON, contents in base 64."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_reflex.errors import TargetError


@dataclass(frozen=True)
class Change:
    """A file before and after; None is no file."""

    path: Path
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True)
class Intent:
    """A patch and all that it changes."""

    patch_id: str
    changes: tuple[Change, ...]


def dumps(intent: Intent) -> bytes:
    """An intent as it is kept."""
    files = [
        {"path": str(each.path), "before": _text(each.before), "after": _text(each.after)} for each in intent.changes
    ]
    return json.dumps({"patch_id": intent.patch_id, "files": files}, indent=1).encode()


def loads(content: bytes, name: str) -> Intent:
    """The intent that `dumps` was given.

    Raises:
        TargetError: It is something else; files are written so that this takes a damaged disk or a hand.
    """
    try:
        said: Any = json.loads(content)
        files = tuple(Change(Path(one["path"]), _bytes(one["before"]), _bytes(one["after"])) for one in said["files"])
        return Intent(str(said["patch_id"]), files)
    except (ValueError, TypeError, KeyError) as error:
        raise TargetError(f"{name} is damaged; look at the rule files and delete it") from error


def _text(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _bytes(said: str | None) -> bytes | None:
    return None if said is None else b64decode(said, validate=True)
