"""The reading side of the spool: what recorders wrote, page by page.

A file is written by one process and never changed but at its end. So a reader that keeps, in one transaction with the
events, how far it has read a file (its name and the page's `next_offset`) takes in each event exactly once, whatever
dies in between. Names are never used again.

Anything may lie in a file: what is not an event is reported with its place and its first bytes, and reading goes on
behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import orjson

from dspy_reflex.recorder import frames, lines
from dspy_reflex.recorder.frames import Frame, Gap
from dspy_reflex.recorder.owner import FOLDER, age_of, is_owned

PAGE_BYTES = 1024 * 1024
"""Read at a time, as long as events are found in it."""
EXCERPT_BYTES = 200

_Part = Frame | Gap


@dataclass(frozen=True, slots=True)
class Bad:
    """Bytes that are no event."""

    offset: int
    """Where they begin."""
    reason: str
    excerpt: bytes
    """The first of them."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some events of a file."""

    events: list[tuple[bytes, int]] = field(default_factory=list[tuple[bytes, int]])
    """The JSON object of each, in UTF-8, and the offset behind it."""
    bad: list[Bad] = field(default_factory=list[Bad])
    next_offset: int = 0
    """Where to go on, behind events and bad bytes."""
    at_end: bool = False
    """Whether there is no more for now; its owner, if alive, may write more."""


class Spool:
    """The files that the recorders of a home left or are writing."""

    def __init__(self, home: Path) -> None:
        """Look into a home; nothing is made."""
        self.folder = home / FOLDER

    def pending(self) -> list[Path]:
        """All files of recorders, those begun first first; empty without a spool."""
        aged = ((age_of(path), path) for path in self._files())
        return [path for _, path in sorted((age, path) for age, path in aged if age)]

    def strays(self) -> list[Path]:
        """Files that are not of the spool."""
        return sorted(path for path in self._files() if not age_of(path) and not path.name.startswith("."))

    def is_alive(self, path: Path) -> bool:
        """Whether its owner may still write to it: not if it died, or went on to another file."""
        try:
            return is_owned(path)
        except OSError:
            return False

    def read(self, path: Path, offset: int, limit: int) -> Page:
        """Up to so many events and bad stretches of a file from an offset on.

        The end of a file whose owner is alive may be half written: it is left for later. A file that cannot be read
        is reported, and one that is gone has no more to say.
        """
        try:
            owned = is_owned(path)  # asked first: what a dead owner wrote is all there
            return _page(_look(path, offset, owned), limit)
        except FileNotFoundError:
            return Page(next_offset=offset, at_end=True)
        except OSError as error:
            return Page(bad=[Bad(offset, f"cannot be read: {error}", b"")], next_offset=offset, at_end=True)

    def remove(self, path: Path, offset: int) -> bool:
        """Remove a file that was read up to an offset; not if its owner is alive or there is more in it."""
        if self.is_alive(path) or self.read(path, offset, 1) != Page(next_offset=offset, at_end=True):
            return False
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _files(self) -> Iterator[Path]:
        return (path for path in self.folder.glob("*") if path.is_file())


@dataclass(frozen=True, slots=True)
class _Look:
    """What lies in a file from an offset on; the parts count from there."""

    offset: int
    content: bytes
    parts: list[_Part]
    is_cut: bool
    """Whether the file goes on behind it."""


def _look(path: Path, offset: int, owned: bool) -> _Look:
    look = _read(path, offset, PAGE_BYTES)
    if look.is_cut and not any(isinstance(part, Frame) for part in look.parts):
        look = _read(path, offset, -1)
    if not owned:
        return look
    # The kernel copies a file to us while its owner writes, so we may miss a frame and have the one behind it. At a
    # second look the first must be there, for it was written first; if it is still missing, it is damaged.
    holes = {part.start for part in look.parts[:-1] if isinstance(part, Gap)}
    if holes:
        look = _read(path, offset, len(look.content))
    parts = list(takewhile(lambda part: isinstance(part, Frame) or part.start in holes, look.parts))
    return _Look(offset, look.content, parts, look.is_cut)


def _read(path: Path, offset: int, size: int) -> _Look:
    """So many bytes, or all for -1. What may have been cut by their end is no part."""
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read(size)
        is_cut = size >= 0 and bool(file.read(1))
    parts = list((lines if path.suffix == lines.SUFFIX else frames).scan(content))
    if is_cut and parts and isinstance(parts[-1], Gap):
        parts.pop()
    return _Look(offset, content, parts, is_cut)


def _page(look: _Look, limit: int) -> Page:
    events: list[tuple[bytes, int]] = []
    bad: list[Bad] = []
    for part in look.parts[:limit]:
        payload = part.payload if isinstance(part, Frame) else look.content[part.start : part.end]
        problem = _problem(payload)
        if not problem:
            events.append((payload, look.offset + part.end))
        else:
            reason = problem if isinstance(part, Frame) else "torn or damaged"
            bad.append(Bad(look.offset + part.start, reason, payload[:EXCERPT_BYTES]))
    read = look.parts[:limit]
    end = look.offset + (read[-1].end if read else 0)
    return Page(events, bad, end, at_end=len(look.parts) <= limit and not look.is_cut)


def _problem(payload: bytes) -> str:
    """Why it is no event; empty if it is one."""
    try:
        event = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error}"
    return "" if isinstance(event, dict) else "not an object"
