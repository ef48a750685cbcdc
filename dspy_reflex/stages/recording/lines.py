"""Outcomes from JSON Lines, REFLEX's or our own: each line is an event or is said to be none, and no line harms another.

| key | value |
|---|---|
| `task`, `actual_outcome` | required of a failure |
| `agent_id`, `parent_agent_id`, `expected_outcome`, `severity`, `context` | optional |
| `event_id`, `timestamp` | optional; an ISO date and time, UTC where it has no zone, or seconds since 1970 |
| `ok` | true for a good outcome |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

import orjson

from dspy_reflex.stages.recording.log import SEVERITIES, Event, told_event

MAX_LINE_BYTES = 64 * 1024 * 1024
EXCERPT_BYTES = 4000
_BOM = b"\xef\xbb\xbf"
_LATEST_US = 2**53


@dataclass(frozen=True)
class Line:
    """A line that is an event; `id` and `at` are in it only where the line said so."""

    number: int
    event: Event
    content: bytes


@dataclass(frozen=True)
class BadLine:
    """A line that is none."""

    number: int
    offset: int
    """Where it begins, in bytes."""
    reason: str
    excerpt: bytes
    """The beginning of it."""


def read_lines(stream: BinaryIO) -> Iterator[Line | BadLine]:
    """All lines of a stream that say something, in order."""
    offset = 0
    for number, (content, size) in enumerate(_pieces(stream), 1):
        bare = content.removeprefix(_BOM if number == 1 else b"").strip()
        if bare:
            read = _event(bare) if size <= MAX_LINE_BYTES else f"longer than {MAX_LINE_BYTES} bytes"
            bad = BadLine(number, offset, read, bare[:EXCERPT_BYTES]) if isinstance(read, str) else None
            yield bad or Line(number, cast("Event", read), bare)
        offset += size


def _pieces(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Lines and their sizes; of one that is far too long only the beginning."""
    while first := stream.readline(MAX_LINE_BYTES):
        size, last = len(first), first
        while len(last) == MAX_LINE_BYTES and not last.endswith(b"\n"):
            last = stream.readline(MAX_LINE_BYTES)
            size += len(last)
        yield first, size


def _event(line: bytes) -> Event | str:
    """The event of a line, or what is wrong with it."""
    try:
        row = _parsed(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(row, dict):
        return "not an object"
    row = cast("dict[str, Any]", row)
    at = _time_us(row.get("timestamp"))
    if problem := at if isinstance(at, str) else _problem(row):
        return problem
    given = row.get("event_id", row.get("id"))
    return {**told_event(row), **({"id": given} if given else {}), **({"at": at} if at is not None else {})}


def _parsed(line: bytes) -> Any:
    """What a line holds, by Python's own JSON where that is laxer: it wrote most of these files, NaN and all."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line.decode())


def _problem(row: dict[str, Any]) -> str:
    for name in ("agent_id", "parent_agent_id", "event_id", "task"):
        if not isinstance(row.get(name), str | None):
            return f"{name} is no text"
    if row.get("ok") is True:
        return ""
    if not row.get("task") or row.get("actual_outcome") is None:
        return "task and actual_outcome are required"
    if row.get("severity") not in (None, *SEVERITIES):
        return f"severity is none of {', '.join(SEVERITIES)}"
    return ""


def _time_us(told: object) -> int | str | None:
    """Microseconds since 1970; None where nothing is said, a sentence where it cannot be read."""
    if told is None:
        return None
    try:
        at = datetime.fromtimestamp(told, UTC) if isinstance(told, int | float) else datetime.fromisoformat(str(told))
        at_us = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError):
        at_us = -1
    return at_us if 0 <= at_us < _LATEST_US else "timestamp is no time since 1970"
