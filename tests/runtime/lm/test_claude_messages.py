"""What Anthropic's Messages API is sent, with its marks for the prompt cache, and what is read from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.claude_messages import CACHEABLE_CHARS, completion_of, request_of
from dspy_reflex.runtime.lm.model import Completion, Message
from tests.runtime.lm.loopback import KEY, answer, loopback, run_async, run_sync, text_of

MARK = {"type": "ephemeral"}
LONG = "x" * CACHEABLE_CHARS


def chat(*contents: str, system: str = "") -> list[Message]:
    """User and assistant in turn, after a system message if there is one."""
    roles = ["user", "assistant"] * len(contents)
    said = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    return [{"role": "system", "content": system}, *said] if system else said


def marks(request: dict[str, Any]) -> list[str]:
    """The texts that end with a mark."""
    contents = [request.get("system", ""), *(message["content"] for message in request["messages"])]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    assert all(block["cache_control"] == MARK for block in blocks)
    return [block["text"] for block in blocks]


@pytest.mark.parametrize(
    ("messages", "marked"),
    [
        (chat("q", system=LONG), [LONG]),
        (chat("q", "a", "q", system=LONG), [LONG, "a"]),
        (chat("q", LONG, "q", "b", "q", system="short"), ["b"]),
        (chat("q", LONG, "q"), [LONG]),
        (chat("q", "a", "q", system="short"), []),
        (chat("q", "a", LONG), []),
        (chat("q", "a", "q", system=LONG[1:]), ["a"]),
        (chat("q", system=LONG[1:]), []),
        (chat(LONG), []),
    ],
)
def test_the_end_of_what_questions_share_is_marked(messages: list[Message], marked: list[str]) -> None:
    """The system text and the last demo, if a cache would take what is before them; never the question."""
    assert marks(request_of("anthropic/m", 9, messages)) == marked


@given(st.lists(st.text(max_size=CACHEABLE_CHARS * 2), min_size=1, max_size=6), st.text(max_size=CACHEABLE_CHARS * 2))
def test_marks_change_no_text_and_leave_the_chat_alone(contents: list[str], system: str) -> None:
    """And there are never more than the API's four."""
    messages = chat(*contents, system=system)
    before = json.dumps(messages)
    request = request_of("anthropic/m", 9, messages)
    assert json.dumps(messages) == before
    assert text_of(request.get("system", "")) == system
    assert [text_of(message["content"]) for message in request["messages"]] == contents
    assert len(marks(request)) <= 4
    assert "cache_control" not in json.dumps(request["messages"][-1]) or len(contents) > 1


def test_calls_are_marked_and_what_the_cache_had_is_counted() -> None:
    """The provider leaves it out of its input tokens; here it is part of them."""
    pytest.importorskip("anthropic")
    replies = [answer("a", cache_creation_input_tokens=600), answer("a", cache_read_input_tokens=600)]
    with loopback(*replies) as server:
        model = Claude("anthropic/claude-test", url=server.url, key=KEY)
        found = [run(model, chat("q", system=LONG)) for run in (run_sync, run_async)]
    assert found == [
        Completion("a", "stop", 611, 7, cache_write_tokens=600),
        Completion("a", "stop", 611, 7, cache_read_tokens=600),
    ]
    assert [marks(request.body) for request in server.requests] == [[LONG]] * 2


def test_what_a_provider_leaves_out_is_nothing() -> None:
    """Gateways do; and blocks that are no text are no answer."""
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    usage = {"input_tokens": None, "cache_read_input_tokens": None}
    assert completion_of({"content": blocks, "usage": usage}) == Completion("ab")
    assert completion_of({"content": [], "usage": {}, "stop_reason": "refusal"}) == Completion("", "refusal")
