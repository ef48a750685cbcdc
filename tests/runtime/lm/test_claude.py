"""The Claude client against a real server that speaks Anthropic's Messages."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from dspy_reflex.errors import MissingExtraError, ModelNotConfiguredError, ModelUnavailableError
from dspy_reflex.runtime.lm import openai_compatible
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Message
from tests.runtime.lm.loopback import KEY, answer, error, garbage, loopback, run_async, run_sync

CHAT: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "a"},
    {"role": "user", "content": "hello"},
]


def claude(url: str, **options: int | float) -> Claude:
    """Return a client of the loopback server."""
    pytest.importorskip("anthropic")
    return Claude("anthropic/claude-test", url=url, key=KEY, **options)  # pyright: ignore[reportArgumentType]


def test_the_request_is_the_protocol_s() -> None:
    """The system message travels apart, the others in order, and no temperature is sent."""
    with loopback() as server:
        claude(server.url, max_tokens=99).complete(CHAT)
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["authorization"] == f"Bearer {KEY}"  # as the SDK has it since 2.x
    assert request.body == {
        "model": "claude-test",
        "max_tokens": 99,
        "system": "Be brief.",
        "messages": CHAT[1:],
    }


def test_without_a_system_message_none_is_sent() -> None:
    """An empty system text would be refused."""
    with loopback() as server:
        claude(server.url).complete(CHAT[1:])
    assert "system" not in server.requests[0].body


def test_overloaded_is_retried() -> None:
    """529 is Anthropic's own status, and passes."""
    with loopback(error(529), error(529), answer("there")) as server:
        assert claude(server.url, attempts=3).complete(CHAT).text == "there"
    assert len(server.requests) == 3


def test_a_long_retry_after_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK itself would wait for a day if told so."""
    monkeypatch.setattr(openai_compatible, "LONGEST_WAIT_S", 0.2)
    for run in (run_sync, run_async):
        with loopback(error(429, retry_after="30")) as server:
            model = claude(server.url)
            started_s = time.monotonic()
            run(model, CHAT)
            assert 0.2 <= time.monotonic() - started_s < 5


def test_a_long_wait_in_milliseconds_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`retry-after-ms` is read by the SDK before `retry-after`."""
    monkeypatch.setattr(openai_compatible, "LONGEST_WAIT_S", 0.2)
    with loopback(error(429, retry_after_ms="30000")) as server:
        model = claude(server.url)
        started_s = time.monotonic()
        model.complete(CHAT)
        assert 0.2 <= time.monotonic() - started_s < 5


@pytest.mark.parametrize("body", ["<html>proxy</html>", '{"content": [', "[]", '{"content": []}', '{"usage": {}}'])
def test_a_success_without_a_message_is_an_outage(body: str) -> None:
    """A gateway's page is never read as an empty answer."""
    with loopback(*[garbage(body)] * 2) as server, pytest.raises(ModelUnavailableError, match="not a message"):
        claude(server.url, attempts=2).complete(CHAT)
    assert len(server.requests) == 2


def test_an_unknown_model_is_said_at_once() -> None:
    """404 does not pass by waiting."""
    with (
        loopback(error(404, "model: claude-test")) as server,
        pytest.raises(ModelNotConfiguredError, match="HTTP 404: model: claude-test"),
    ):
        claude(server.url).complete(CHAT)
    assert len(server.requests) == 1


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtraError, match=r"anthropic/claude-test needs the extra \[anthropic\]"):
        Claude("anthropic/claude-test", url="http://127.0.0.1:1/v1", key=KEY)


def test_one_client_serves_many_event_loops() -> None:
    """No connection of a loop that ended is used again, and each loop has one client."""
    with loopback() as server:
        model = claude(server.url, attempts=1)
        assert [asyncio.run(model.acomplete(CHAT)).text for _ in range(3)] == ["hello"] * 3
