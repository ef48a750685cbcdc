"""An event that is cleared holds nothing that would be redacted."""

from __future__ import annotations

from dspy_reflex.redaction.scan import clears


def test_an_ordinary_event_is_cleared() -> None:
    assert clears(b'{"id":"evt_01JDXK9QZ4T7M2V8WYB3C5D6E7","at":"2026-11-20T11:05:40.123456+00:00","max_tokens":4096}')
