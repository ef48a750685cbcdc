"""What an agent did, on its way to the recorder. Nothing here raises, reads settings or imports what takes time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

SEVERITIES = ("low", "medium", "high", "critical")
NO_TASK = "(no task was given)"
NOTE = "dspy_reflex"
"""Key of a context under which stands what was wrong with an event."""

Event = dict[str, Any]


def failure_event(
    agent_id: str,
    task: str,
    expected_outcome: object = None,
    actual_outcome: object = None,
    severity: str = "medium",
    context: object = None,
    parent_agent_id: str | None = None,
) -> Event:
    """A failure as `Recorder.record` takes it; where its task or severity cannot be used, it says so in its context."""
    event: Event = {
        "agent_id": agent_id,
        "parent_agent_id": parent_agent_id,
        "ok": False,
        "task": task,
        "expected_outcome": expected_outcome,
        "actual_outcome": "" if actual_outcome is None else actual_outcome,
        "severity": severity,
        "context": context,
    }
    usable = type(task) is str and task and type(severity) is str and severity in SEVERITIES
    return event if usable else _mended(event)


def success_event(agent_id: str, task: str | None = None, parent_agent_id: str | None = None) -> Event:
    """A good outcome as `Recorder.record` takes it."""
    return {"agent_id": agent_id, "parent_agent_id": parent_agent_id, "ok": True, "task": task}


def _mended(event: Event) -> Event:
    from dspy_reflex.untrusted import as_text, clip

    notes: list[str] = []
    task, severity = as_text(event["task"]), as_text(event["severity"])
    if not task:
        notes.append("no task was given")
    if not isinstance(event["severity"], str) or severity not in SEVERITIES:
        notes.append(f"the severity was {clip(severity, 80)!r}")
        severity = "medium"
    context = _with_note(event["context"], "; ".join(notes)) if notes else event["context"]
    return {**event, "task": task or NO_TASK, "severity": severity, "context": context}


def _with_note(context: object, note: str) -> object:
    if context is None:
        return {NOTE: note}
    return (
        {**cast("dict[str, Any]", context), NOTE: note} if type(context) is dict else {NOTE: note, "context": context}
    )


def told_event(row: Mapping[str, Any]) -> Event:
    """The event of a row with REFLEX's keys or ours, without `id` and `at`; `stages.lines` has looked at it."""
    who = {name: row.get(name) for name in ("agent_id", "parent_agent_id")}
    if row.get("ok") is True:
        return success_event(str(who["agent_id"]), row.get("task"), who["parent_agent_id"])
    names = ("task", "expected_outcome", "actual_outcome", "context")
    told = {name: row.get(name) for name in names}
    return failure_event(**who, **told, severity=row.get("severity") or "medium")  # pyright: ignore[reportArgumentType]
