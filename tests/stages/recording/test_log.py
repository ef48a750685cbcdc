"""What an agent did, on its way: never an exception, never a lost word, and lines that do not harm each other."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.stages.recording.lines import BadLine, Line, read_lines
from dspy_reflex.stages.recording.log import NO_TASK, NOTE, SEVERITIES, failure_event, success_event


class Odd:
    """An object that is of no help."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __bool__(self) -> bool:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def test_a_failure_keeps_what_it_says() -> None:
    event = failure_event("a", "t", "e", "o", "high", {"k": 1}, "lead")
    assert (event["task"], event["severity"], event["context"], event["parent_agent_id"]) == (
        "t",
        "high",
        {"k": 1},
        "lead",
    )
    assert (event["ok"], success_event("a", "t")["ok"]) == (False, True)


@pytest.mark.parametrize("context", [None, {"k": 1}, [1, 2], "text"])
def test_what_cannot_be_used_is_said_in_the_context_and_nothing_is_lost(context: Any) -> None:
    event = failure_event("a", "", None, None, "urgent", context)
    assert (event["task"], event["severity"], event["actual_outcome"]) == (NO_TASK, "medium", "")
    assert event["context"][NOTE] == "no task was given; the severity was 'urgent'"
    assert context is None or context == {"k": 1} or event["context"]["context"] == context
    assert not isinstance(context, dict) or event["context"]["k"] == 1


@pytest.mark.parametrize("odd", [Odd(), None, 3, ["high"], b"x", float("nan"), "\ud800"])
def test_nothing_is_raised_whatever_is_given(odd: Any) -> None:
    event = failure_event(odd, odd, odd, odd, odd, odd, odd)
    assert event["severity"] == "medium"
    assert event["task"]


def lines(text: bytes) -> list[Line | BadLine]:
    return list(read_lines(io.BytesIO(text)))


GOOD = b'{"agent_id": "a", "task": "t", "actual_outcome": "o"}'


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"null", "not an object"),
        (b"[1]", "not an object"),
        (b'{"task": "t", "actual_out', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 3000, "not JSON"),
        (b'{"actual_outcome": "o"}', "required"),
        (b'{"task": "t", "actual_outcome": null}', "required"),
        (b'{"task": 3, "actual_outcome": "o"}', "task is no text"),
        (b'{"agent_id": {}, "task": "t", "actual_outcome": "o"}', "agent_id is no text"),
        (b'{"task": "t", "actual_outcome": "o", "severity": "High"}', "severity is none of"),
        (b'{"task": "t", "actual_outcome": "o", "severity": []}', "severity is none of"),
        (b'{"task": "t", "actual_outcome": "o", "timestamp": "soon"}', "no time"),
        (b'{"task": "t", "actual_outcome": "o", "timestamp": 1e300}', "no time"),
        (b'{"task": "t", "actual_outcome": "o", "timestamp": "1950-01-01"}', "no time"),
    ],
)
def test_a_bad_line_is_named_and_harms_no_neighbour(bad: bytes, reason: str) -> None:
    first, odd, last = lines(GOOD + b"\n" + bad + b"\r\n\n" + GOOD)
    assert isinstance(odd, BadLine)
    assert (odd.number, odd.offset) == (2, len(GOOD) + 1)
    assert reason in odd.reason
    assert [type(first), type(last)] == [Line, Line]


def test_reflex_s_keys_are_understood() -> None:
    row = {
        "event_id": "EVT-A1B2C3D4", "timestamp": "2026-03-06T12:00:00.5+02:00", "agent_id": "veya", "task": "t",
        "expected_outcome": "e", "actual_outcome": "o", "severity": "critical", "context": {"k": [1]}, "resolved": False,
    }  # fmt: skip
    (line,) = lines(b"\xef\xbb\xbf" + json.dumps(row).encode())
    assert isinstance(line, Line)
    assert (line.event["id"], line.event["at"]) == ("EVT-A1B2C3D4", 1772791200500000)
    assert (line.event["expected_outcome"], line.event["context"]) == ("e", {"k": [1]})
    (good,) = lines(b'{"agent_id": "a", "ok": true, "timestamp": 12.5}')
    assert isinstance(good, Line)
    assert (good.event["ok"], good.event["at"]) == (True, 12_500_000)


def test_what_only_python_takes_for_json_is_taken(tmp_path: Path) -> None:
    (line,) = lines(
        b'{"task": "\\ud800", "actual_outcome": "o", "context": {"loss": NaN, "n": 123456789012345678901234567890}}'
    )
    assert isinstance(line, Line)
    recorder = Recorder(tmp_path)
    recorder.record(line.event)
    recorder.close()
    assert recorder.lost == 0


def test_a_line_of_five_megabytes_is_a_line() -> None:
    (line,) = lines(json.dumps({"task": "t", "actual_outcome": "x" * 5_000_000}).encode())
    assert isinstance(line, Line)


@given(st.lists(st.binary(max_size=60) | st.just(GOOD), max_size=8))
def test_no_bytes_raise_and_every_good_line_is_found(parts: list[bytes]) -> None:
    found = lines(b"\n".join(parts))
    said = [one for one in found if isinstance(one, Line) and one.content == GOOD]
    assert len(said) == sum(part.strip() == GOOD for piece in parts for part in piece.split(b"\n"))
    assert all(
        line.event["severity"] in SEVERITIES for line in found if isinstance(line, Line) and not line.event["ok"]
    )
