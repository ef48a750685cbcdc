"""From the spool into the store, exactly once: events and the place up to which a file was read move together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
from filelock import FileLock, Timeout
from sqlalchemy import Connection, select

from dspy_reflex.clock import now
from dspy_reflex.recorder.spool import Bad, Page, Spool
from dspy_reflex.store.outcomes import count_lost, take_in
from dspy_reflex.store.schema import quarantine, spool
from dspy_reflex.store.store import Store
from dspy_reflex.store.upsert import insert_new, put

AT_ONCE = 1000
"""Events in one transaction."""
_NEVER = 2**53
SEVERITIES = ("low", "medium", "high", "critical")


@dataclass(frozen=True)
class Taken:
    """What came in."""

    events: int
    quarantined: int


def ingest(store: Store, home: Path) -> Taken:
    """Take in what this machine's recorders have written; where another process is at it, that one does it."""
    source = Spool(home)
    if not source.folder.is_dir():
        return Taken(0, 0)
    try:
        with FileLock(source.folder / ".ingest.lock", timeout=0):
            taken = [_file(store, source, path) for path in source.pending()]
    except (Timeout, OSError):
        return Taken(0, 0)
    return Taken(sum(one.events for one in taken), sum(one.quarantined for one in taken))


def _file(store: Store, source: Spool, path: Path) -> Taken:
    events = bad = 0
    while True:
        with store.write() as connection:
            offset = connection.scalar(select(spool.c.offset).where(spool.c.file == path.name)) or 0
            page = source.read(path, offset, AT_ONCE)
            new, odd = _page(connection, path, page)
            end = page.next_offset
            if end != offset:
                put(connection, spool, [{"file": path.name, "offset": end}])
        events, bad = events + new, bad + odd
        if page.at_end or end == offset:
            break
    if source.remove(path, end):
        with store.write() as connection:
            connection.execute(spool.delete().where(spool.c.file == path.name))
    return Taken(events, bad)


def _page(connection: Connection, path: Path, page: Page) -> tuple[int, int]:
    good: list[dict[str, Any]] = []
    bad: list[Bad] = list(page.bad)
    for payload, end in page.events:
        read = _event(payload)
        if isinstance(read, str):  # its own place: where it ends, something else may begin
            bad.append(Bad(end - len(payload), read, payload[:200]))
        else:
            good.append(read)
    set_aside(connection, path.name, bad)
    count_lost(connection, [one for one in good if _is_loss(one)])
    return take_in(connection, [one for one in good if not _is_loss(one)]), len(bad)


def set_aside(connection: Connection, file: str, bad: Sequence[Bad]) -> None:
    """Keep what could not be read where `doctor` shows it."""
    rows = [
        {
            "file": file,
            "offset": one.offset,
            "at": now(),
            "reason": one.reason,
            "excerpt": one.excerpt.decode(errors="replace"),
        }
        for one in bad
    ]
    insert_new(connection, quarantine, rows)


def _event(payload: bytes) -> dict[str, Any] | str:
    """The event of a payload, or what is wrong with it."""
    try:
        event = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error}"
    if not isinstance(event, dict):
        return "not an object"
    told = cast("dict[str, Any]", event)
    return told if _is_loss(told) else _problem(told) or told


def _is_loss(event: dict[str, Any]) -> bool:
    """Whether it tells how many events a recorder could not write."""
    return event.keys() == {"lost", "at"} and all(type(n) is int and 0 <= n < _NEVER for n in event.values())


def _problem(event: dict[str, Any]) -> str:
    if not isinstance(event.get("id"), str) or not 0 < len(event["id"]) <= 200:
        return "no id"
    if not isinstance(event.get("at"), int) or isinstance(event["at"], bool) or not 0 <= event["at"] < _NEVER:
        return "no time"
    if not isinstance(event.get("agent_id"), str) or not isinstance(event.get("ok"), bool):
        return "no agent or no outcome"
    texts = [event.get(name) for name in ("task", "expected_outcome", "actual_outcome", "parent_agent_id")]
    if any(not isinstance(text, str | None) for text in texts):
        return "a text is none"
    if not event["ok"] and (
        event.get("severity") not in SEVERITIES or not event.get("task") or event.get("actual_outcome") is None
    ):
        return "a failure without task, outcome or severity"
    return ""
