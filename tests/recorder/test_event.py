"""Whatever is told becomes one JSON object without secrets that fits into a frame."""

from __future__ import annotations

import enum
from collections import UserDict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.recorder.event import HEAD_SHARE, MAX_BODY_BYTES, MAX_TEXT_CHARS, encode
from dspy_reflex.recorder.frames import MAX_PAYLOAD_BYTES
from dspy_reflex.untrusted import CLIPPED
from tests.recorder.spooled import FAILURE, MARK, SECRET, Hunter


def encoded(event: dict[str, Any]) -> dict[str, Any]:
    """What is written of an event."""
    payload = encode(event, "evt_1", 7, Hunter())
    assert len(payload) <= MAX_PAYLOAD_BYTES
    assert SECRET.encode() not in payload
    return orjson.loads(payload)


def test_a_failure_is_written_as_it_is() -> None:
    assert encoded(FAILURE) == {"id": "evt_1", "at": 7, **FAILURE}


def test_what_was_not_told_is_null_and_what_is_not_ours_is_left_out() -> None:
    told = encoded({"agent_id": "a", "colour": "red"})
    assert told == {"id": "evt_1", "at": 7, "agent_id": "a", "parent_agent_id": None, "ok": False} | dict.fromkeys(
        ("task", "expected_outcome", "actual_outcome", "severity", "context")
    )


def test_of_a_run_that_went_well_little_is_kept() -> None:
    short = {"id": "evt_1", "at": 7, "agent_id": "support-7", "parent_agent_id": None, "ok": True}
    assert encoded({**FAILURE, "ok": True}) == {**short, "task": FAILURE["task"]}
    assert encoded({"agent_id": "support-7", "ok": True}) == short


def test_texts_are_texts() -> None:
    told = encoded({**FAILURE, "agent_id": 7, "task": ["a", "b"], "actual_outcome": ValueError("no"), "severity": 1})
    assert (told["agent_id"], told["task"], told["actual_outcome"]) == ("7", "a\nb", "ValueError: no")
    assert told["severity"] == "1"


class Evil:
    """Breaks whatever it can."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


class EvilError(Exception):
    """Cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class EvilMapping(UserDict[str, Any]):
    """Has keys and no values."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)


class Colour(enum.Enum):
    RED = "red"


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (Evil(), "<unreadable Evil>"),
        ({"evil": Evil(), "good": 1}, {"evil": "<unreadable Evil>", "good": 1}),
        ({"error": EvilError()}, {"error": "<unreadable EvilError>"}),
        (EvilMapping(a=1), "<unreadable EvilMapping>"),
        (CYCLE, ["<cycle>"]),
        (10**30, str(10**30)),
        ([10**5000], ["<integer of 16610 bits>"]),
        ([float("nan"), float("inf"), 1e308], [None, None, 1e308]),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
        ({"\ud800": "a\udfffb"}, {"\ufffd": "a\ufffdb"}),
        ("\ud83d\ude00", "\U0001f600"),
        ({"when": datetime(2026, 1, 2, tzinfo=UTC)}, {"when": "2026-01-02T00:00:00+00:00"}),
        ({"path": Path("a/b")}, {"path": "a/b"}),
        (Colour.RED, "red"),
        (b"bytes \xff", "bytes \ufffd"),
        ({1, 2}, [1, 2]),
        ("\x00\x1b[31m\u202e", "\x00\x1b[31m\u202e"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_object_is_taken_as_context(context: object, expected: object) -> None:
    assert encoded({**FAILURE, "context": context})["context"] == expected


def test_nesting_has_an_end() -> None:
    deep: Any = "deep"
    for _ in range(5000):
        deep = [deep]
    assert b"<nested too deeply>" in orjson.dumps(encoded({**FAILURE, "context": deep})["context"])


def test_secrets_are_taken_out_of_every_text_and_counted() -> None:
    told = encoded(
        {
            "agent_id": f"agent {SECRET}",
            "task": f"log in with {SECRET} or {SECRET}",
            "context": {SECRET: [{"deep": SECRET}], "object": Path(SECRET)},
        }
    )
    assert told["task"] == "log in with [password taken out] or [password taken out]"
    assert told["redacted"] == {"password": 6}
    assert told["id"] == "evt_1"


def test_an_event_that_grows_too_large_by_redaction_is_clipped() -> None:
    told = encoded({**FAILURE, "task": f"{SECRET} " * 30_000})
    assert CLIPPED.search(told["task"])
    assert told["redacted"]["password"] > 1000


def test_a_long_text_keeps_its_ends_and_says_what_is_missing() -> None:
    text = "head " + "x" * 5_000_000 + " tail"
    told = encoded({**FAILURE, "actual_outcome": text})
    assert told["actual_outcome"].startswith("head xxx")
    assert told["actual_outcome"].endswith("xxx tail")
    mark = CLIPPED.search(told["actual_outcome"])
    assert mark
    kept = len(told["actual_outcome"]) - len(mark[0])
    assert mark[0] == f"\n\u2026[{len(text) - kept} characters left out]\u2026\n"
    assert {**told, "actual_outcome": None} == {"id": "evt_1", "at": 7, **FAILURE, "actual_outcome": None}


def test_a_large_context_becomes_a_clipped_text() -> None:
    context = {"tool": "refund", "log": "x" * 5_000_000, "last": "the end"}
    told = encoded({**FAILURE, "context": context})
    assert told["context"].startswith("tool: refund\nlog: xxx")
    assert told["context"].endswith("xxx\nlast: the end")
    assert CLIPPED.search(told["context"])


@pytest.mark.parametrize("inside", range(len(SECRET) + 1))
def test_a_secret_on_the_edge_of_what_is_kept_is_known(inside: int) -> None:
    head = int(MAX_TEXT_CHARS[1] * HEAD_SHARE)
    tail = MAX_TEXT_CHARS[1] - head
    text = "-" * (head - inside) + SECRET + "-" * 300_000 + SECRET + "-" * (tail - inside)
    told = encoded({**FAILURE, "task": text})["task"]
    first, last = CLIPPED.split(told)
    assert first == ("-" * (head - inside) + MARK)[:head]
    assert last == (MARK + "-" * (tail - inside))[-tail:]


@pytest.mark.parametrize("character", ["\x00", "\U0001f600", "\\", "a"])
def test_the_largest_of_everything_fits(character: str) -> None:
    big = character * 300_000
    told = encoded(dict.fromkeys(FAILURE, big) | {"ok": False, "context": {big: big}})
    assert all(len(told[name]) >= MAX_TEXT_CHARS[-1] for name in ("agent_id", "task", "severity", "context"))


@given(st.integers(-40, 40))
def test_the_border_between_whole_and_clipped(around: int) -> None:
    whole = len(orjson.dumps(FAILURE)) - len(FAILURE["task"])
    told = encoded({**FAILURE, "task": "x" * (MAX_BODY_BYTES - whole + around)})
    assert bool(CLIPPED.search(told["task"])) == (around > 0)


@given(
    st.dictionaries(
        st.sampled_from(list(FAILURE)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers() | st.text(), inner, max_size=3),
            max_leaves=8,
        ),
    )
)
def test_every_event_is_taken(event: dict[str, Any]) -> None:
    told = encoded(event)
    assert isinstance(told["agent_id"], str)
    assert isinstance(told["ok"], bool)
