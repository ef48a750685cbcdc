"""Failures from and to files as REFLEX has them: one JSON object a line."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO

import orjson

from dspy_reflex.recorder.event import Patterns, encode
from dspy_reflex.recorder.spool import Bad
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.redaction.redact import redact
from dspy_reflex.stages.recording.lines import BadLine, Line, read_lines
from dspy_reflex.store.diagnoses import current
from dspy_reflex.store.ingest import AT_ONCE, set_aside
from dspy_reflex.store.outcomes import Query, failures, take_in
from dspy_reflex.store.store import Store

EXCERPT_CHARS = 200
_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Imported:
    """What became of a file's lines."""

    new: int
    known: int
    """Those that were there before, also if they were forgotten or pruned since."""
    bad: tuple[BadLine, ...]
    """Those that are no event; `doctor` shows them."""


def import_lines(store: Store, stream: BinaryIO, name: str) -> Imported:
    """Take in a file's outcomes, redacted; a file that is given again changes nothing.

    Args:
        store: Where to.
        stream: The file.
        name: What it is called where its bad lines are shown.
    """
    new = read = 0
    bad: list[BadLine] = []
    lines, identify = read_lines(stream), _Identities()
    while part := list(islice(lines, AT_ONCE)):
        odd = [one for one in part if isinstance(one, BadLine)]
        events = [_event(one, identify(one)) for one in part if isinstance(one, Line)]
        with store.write() as connection:
            set_aside(connection, name, [_bad(one) for one in odd])
            new += take_in(connection, events)
        bad, read = bad + odd, read + len(events)
    return Imported(new, read - new, tuple(bad))


def exported(store: Store, query: Query) -> Iterator[bytes]:
    """The lines of all failures that are wanted, newest first, each with its current diagnosis."""
    page = replace(query, limit=AT_ONCE)
    while True:
        with store.read() as connection:
            found = failures(connection, page)
            said = current(connection, [one.id for one in found])
        yield from (_line(one, said.get(one.id)) for one in found)
        if len(found) < AT_ONCE:
            return
        page = replace(page, behind=(found[-1].at, found[-1].id))


class _Identities:
    """Which id each line gets: its own, unless another line of the file has it and says something else.

    REFLEX's ids have eight hex digits, of which 10,000 hold two that are the same with a probability of 1 in 86. A line
    without one is known again by what it says, and by how often the file has said that before.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._times: dict[str, int] = {}

    def __call__(self, line: Line) -> str:
        given = line.event.get("id", "")
        digest = hashlib.sha256(line.content).hexdigest()
        if not _ID.fullmatch(given):
            self._times[digest] = self._times.get(digest, 0) + 1
            return "evt_" + hashlib.sha256(f"{digest} {self._times[digest]}".encode()).hexdigest()[:26]
        return given if self._known.setdefault(given, digest) == digest else f"{given}-{digest[:16]}"


def _event(line: Line, identity: str) -> dict[str, Any]:
    at = line.event.get("at", time.time_ns() // 1000)
    return orjson.loads(encode(line.event, identity, at, Patterns()))


def _bad(line: BadLine) -> Bad:
    shown, _ = redact(line.excerpt.decode(errors="replace"))
    return Bad(line.offset, f"line {line.number}: {line.reason}", shown[:EXCERPT_CHARS].encode(errors="replace"))


def _line(failure: LoggedFailure, said: Diagnosis | None) -> bytes:
    names = ("agent_id", "parent_agent_id", "task", "expected_outcome", "actual_outcome", "severity", "context")
    told = {name: getattr(failure, name) for name in names}
    row = {"event_id": failure.id, "timestamp": failure.at.isoformat(), **told}
    if said is not None:
        row |= {"root_cause": said.root_cause, "confidence": said.confidence, "needs_review": said.needs_review}
    return orjson.dumps(row) + b"\n"
