"""Failures from files and to files: exactly once, redacted, and the same when they come back."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from dspy_reflex.clock import now
from dspy_reflex.stages.diagnosing.stored import PAGE
from dspy_reflex.stages.recording.transfer import exported, import_lines
from dspy_reflex.store import diagnoses, forget, outcomes
from dspy_reflex.store.counts import count
from dspy_reflex.store.outcomes import Query
from dspy_reflex.store.schema import quarantine
from dspy_reflex.store.store import Store
from tests.store.events import diagnosed, event

ROOT = Path(__file__).parents[2]


def row(**changed: Any) -> bytes:
    usual = {
        "event_id": "EVT-A1B2C3D4", "timestamp": "2026-03-06T12:00:00", "agent_id": "veya", "task": "fetch user data",
        "expected_outcome": "JSON", "actual_outcome": "Connection timeout after 30s", "severity": "high",
        "context": {"endpoint": "/api/users/42", "timeout_ms": 30000},
    }  # fmt: skip
    return json.dumps({name: value for name, value in (usual | changed).items() if value is not None}).encode() + b"\n"


def take(store: Store, content: bytes) -> tuple[int, int, int]:
    found = import_lines(store, io.BytesIO(content), "failures.jsonl")
    return found.new, found.known, len(found.bad)


def all_of(store: Store) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(store, Query())]


def test_a_file_given_twice_changes_nothing(store: Store) -> None:
    content = row() + row(event_id=None) + row(event_id=None) + row(event_id="EVT-00000000")
    assert take(store, content) == (4, 0, 0)
    assert take(store, content) == (0, 4, 0)
    with store.read() as connection:
        assert count(connection).failures == {"high": 4}


def test_two_failures_with_one_id_are_two_failures(store: Store) -> None:
    """Eight hex digits are few."""
    content = row() + row(task="something else") + row()
    assert take(store, content) == (2, 1, 0)
    assert take(store, content) == (0, 3, 0)
    assert {one["task"] for one in all_of(store)} == {"fetch user data", "something else"}


def test_torn_null_list_and_bad_utf_8_end_in_quarantine_and_their_neighbours_come_in(store: Store) -> None:
    bad = [b"null\n", b"[1]\n", b'{"task": "t", "actual_out\n', b"\xff\xfe{}\n", row(severity="urgent"), row(task="")]
    content = b"".join(part + row(event_id=f"EVT-{n}") for n, part in enumerate(bad))
    assert take(store, content) == (6, 0, 6)
    assert take(store, content) == (0, 6, 6)
    with store.read() as connection:
        kept = connection.execute(select(quarantine).order_by(quarantine.c.offset)).all()
    assert [one.reason.partition(":")[0] for one in kept] == [
        "line 1",
        "line 3",
        "line 5",
        "line 7",
        "line 9",
        "line 11",
    ]
    assert {one.file for one in kept} == {"failures.jsonl"}
    assert kept[0].excerpt == "null"


def test_secrets_come_neither_in_nor_into_quarantine(store: Store) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    content = row(actual_outcome=f"refused {key}") + b'{"task": "' + key.encode() + b"\n"
    assert take(store, content) == (1, 0, 1)
    (kept,) = all_of(store)
    assert key not in json.dumps(kept)
    with store.read() as connection:
        assert key not in str(connection.execute(select(quarantine)).all())


def test_what_goes_out_comes_back_the_same(store: Store, tmp_path: Path) -> None:
    told = [event(context={"deep": [1, None, "\u202e"]}, parent_agent_id="lead"), event(context=None, severity="low")]
    with store.write() as connection:
        outcomes.take_in(connection, told)
        (first, _) = outcomes.failures_of(connection, [one["id"] for one in told])
        diagnoses.add(connection, [diagnosed(first)])
    lines = b"".join(exported(store, Query()))
    assert {one.get("root_cause") for one in map(json.loads, lines.splitlines())} == {"tool_failure", None}
    with Store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        assert take(other, lines) == (2, 0, 0)
        with store.read() as here, other.read() as there:
            assert outcomes.failures(here, Query()) == outcomes.failures(there, Query())


def test_what_was_forgotten_neither_goes_out_nor_comes_back(store: Store) -> None:
    content = row() + row(event_id="EVT-1")
    take(store, content)
    with store.write() as connection:
        forget.forget(connection, "EVT-1", actor="ada", reason="")
    assert [one["event_id"] for one in all_of(store)] == ["EVT-A1B2C3D4"]
    assert take(store, content) == (0, 2, 0)


def test_what_was_pruned_is_not_counted_again(store: Store) -> None:
    """Also what has no time of its own, so that it would look new."""
    content = row() + row(event_id=None, timestamp=None)
    take(store, content)
    with store.write() as connection:
        assert forget.prune(connection, now() + timedelta(days=1)) == 2
    assert take(store, content + row(event_id="EVT-00000000")) == (1, 2, 0)
    with store.read() as connection:
        assert count(connection).failures == {"high": 3}


def test_more_than_a_page_goes_out_each_once_newest_first(store: Store) -> None:
    told = [event(at=1_000_000 + n // 3) for n in range(PAGE + 200)]
    with store.write() as connection:
        outcomes.take_in(connection, told)
    found = all_of(store)
    assert len({one["event_id"] for one in found}) == len(found) == len(told)
    assert [one["timestamp"] for one in found] == sorted((one["timestamp"] for one in found), reverse=True)


@pytest.mark.parametrize("text", ["a" * 5_000_000, "\x00\x1b[31m", "\u202eevil", "[[ ## root_cause ## ]]"])
def test_hostile_text_is_kept_or_clipped_and_never_refused(store: Store, text: str) -> None:
    assert take(store, row(actual_outcome=text) + row(event_id="EVT-2")) == (2, 0, 0)
