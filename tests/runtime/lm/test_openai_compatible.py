"""The OpenAI-compatible client against a real server: what it sends, and how it reads each kind of answer."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import ModelUnavailableError
from dspy_reflex.runtime.lm.model import Completion, Message
from dspy_reflex.runtime.lm.openai_compatible import (
    LONGEST_WAIT_S,
    OpenAICompatible,
    outage,
    read_completion,
    retry_after_s,
    said,
)
from tests.runtime.lm.loopback import KEY, answer, error, loopback, run_async, run_sync

CHAT: list[Message] = [{"role": "user", "content": "hello"}]


def body_sent(name: str) -> dict[str, object]:
    """Return what a model of that name sends for `CHAT`."""
    with loopback() as server:
        OpenAICompatible(name, url=server.url, key=KEY, max_tokens=99).complete(CHAT)
        return server.requests[0].body


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ollama_chat/llama3.2:1b", {"model": "llama3.2:1b", "max_tokens": 99, "temperature": 0.0}),
        ("hosted_vllm/org/model", {"model": "org/model", "max_tokens": 99, "temperature": 0.0}),
        ("openai/gpt-4o-mini", {"model": "gpt-4o-mini", "max_completion_tokens": 99, "temperature": 0.0}),
        ("openai/gpt-5-mini", {"model": "gpt-5-mini", "max_completion_tokens": 99}),
        ("openai/o3", {"model": "o3", "max_completion_tokens": 99}),
    ],
)
def test_each_provider_gets_the_settings_it_takes(name: str, settings: dict[str, object]) -> None:
    """Reasoning models get no temperature; only OpenAI gets `max_completion_tokens`."""
    assert body_sent(name) == settings | {"messages": CHAT}


def test_the_key_travels_as_a_bearer_token_and_no_key_sends_no_header() -> None:
    """A keyless server is not sent an empty credential."""
    with loopback() as server:
        OpenAICompatible("hosted_vllm/m", url=server.url, key=KEY).complete(CHAT)
        OpenAICompatible("hosted_vllm/m", url=server.url).complete(CHAT)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in server.requests[1].headers
    assert server.requests[0].path == "/v1/chat/completions"


def test_the_server_says_how_long_to_wait() -> None:
    """`Retry-After` replaces the backoff, in sync and async calls."""
    for run in (run_sync, run_async):
        with loopback(error(429, retry_after="0.3"), answer()) as server:
            model = OpenAICompatible("hosted_vllm/m", url=server.url, backoff_s=0.001)
            started_s = time.monotonic()
            run(model, CHAT)
            assert time.monotonic() - started_s >= 0.3


def test_nothing_listens() -> None:
    """A refused connection is an outage, and the error says where."""
    with loopback() as server:
        url = server.url
    with pytest.raises(ModelUnavailableError, match=r"hosted_vllm/m at 127\.0\.0\.1:\d+ gave .* in 2 attempts"):
        OpenAICompatible("hosted_vllm/m", url=url, attempts=2, backoff_s=0.001).complete(CHAT)


def test_a_second_of_a_date_is_waited_for_and_a_past_one_is_not() -> None:
    """An HTTP date counts from now."""
    assert retry_after_s(formatdate(time.time() + 20, usegmt=True)) == pytest.approx(20, abs=2)
    assert retry_after_s(formatdate(time.time() - 20, usegmt=True)) == 0.0
    assert retry_after_s("7") == 7.0
    assert retry_after_s("86400") == LONGEST_WAIT_S
    assert retry_after_s(formatdate(time.time() + 86400, usegmt=True)) == LONGEST_WAIT_S
    assert retry_after_s("soon") is None
    assert retry_after_s(None) is None


@given(st.one_of(st.text(), st.floats().map(str), st.datetimes().map(str)))
def test_no_header_makes_a_wait_outside_the_bounds(header: str) -> None:
    """Whatever a server writes, the wait is none or in [0, LONGEST_WAIT_S]."""
    wait_s = retry_after_s(header)
    assert wait_s is None or 0.0 <= wait_s <= LONGEST_WAIT_S


NOT_CHATS: list[object] = [None, [], "x", 1, {}, {"choices": []}, {"choices": None}, {"choices": [{}]}]


def choice(finish: str | None, **message: object) -> dict[str, object]:
    """Return the body of a chat completion without usage."""
    return {"choices": [{"finish_reason": finish, "message": message}]}


@pytest.mark.parametrize(
    ("body", "completion"),
    [
        (choice("stop", content="a"), Completion("a")),
        (choice(None, content="a"), Completion("a")),
        (choice("length", content=None), Completion("", "length")),
        (choice("content_filter", content=""), Completion("", "refusal")),
        (choice("stop", content=None, refusal="no"), Completion("no", "refusal")),
        (choice("stop", content="a", refusal=None) | {"usage": None}, Completion("a")),
        (
            choice("stop", content="a") | {"usage": {"prompt_tokens": 3, "completion_tokens": "x"}},
            Completion("a", "stop", 3),
        ),
    ],
)
def test_every_finish_reason_is_read(body: object, completion: Completion) -> None:
    """`message.refusal` counts before the finish reason; missing usage is 0."""
    assert read_completion(body) == completion


@pytest.mark.parametrize("body", [*NOT_CHATS, choice("stop", content=[1])])
def test_what_is_not_a_chat_completion_is_not_read_as_one(body: object) -> None:
    """A gateway's own JSON never becomes an empty answer."""
    with pytest.raises((LookupError, TypeError, AttributeError)):
        read_completion(body)


def test_what_a_server_says_is_one_short_line_without_the_key() -> None:
    """Even where the clip would cut the key in two."""
    told = said("x " * 140 + KEY + "\n" + "y" * 900, KEY)
    assert len(told) == 300
    assert "\n" not in told
    assert KEY[:6] not in told


def test_an_error_names_the_host_without_the_password_in_the_address() -> None:
    """Addresses may hold a user and password."""
    text = str(outage("openai/m", "http://me:secret@gate.example:81/v1", 1, "a time-out"))
    assert "gate.example:81" in text
    assert "secret" not in text
    assert "in 1 attempt," in text


def test_one_client_serves_many_event_loops() -> None:
    """No connection of a loop that ended is used again."""
    with loopback() as server:
        model = OpenAICompatible("hosted_vllm/m", url=server.url, attempts=1)
        assert [asyncio.run(model.acomplete(CHAT)).text for _ in range(3)] == ["hello"] * 3


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 8192 tokens.",
        '{"code": "context_length_exceeded"}',
        "the request exceeds the available context size (exceed_context_size_error)",
    ],
)
def test_a_question_that_is_too_long_is_an_answer_of_no_use_and_no_error(said: str) -> None:
    """The next question may be short: one row must not end a batch."""
    with loopback(error(400, said)) as server:
        model = OpenAICompatible("hosted_vllm/small", url=server.url)
        assert model.complete([{"role": "user", "content": "hello"}]).finish == "too_long"
