"""What Anthropic's Messages API is sent, and what it sends back: one form for calls and for batches.

So an answer from a batch may stand in for a call's. What every question to a program begins with, the system text and
the demos, is marked for the provider's prompt cache: whoever asks again within five minutes pays a tenth or less for it
(`cache_read` in prices.toml), whoever asks first a quarter more. Nothing is marked where the cache would not take it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dspy_reflex.runtime.lm.model import Completion, Finish, Message

CACHEABLE_CHARS = 2_048
"""The shortest beginning that is marked: 512 tokens at four characters, what Opus 5 and 5.5, Sonnet 5.5, Haiku 5.5 and
Fable 5 take. Other models want more, up to 4,096 tokens (Opus 4.5 and 4.6, Haiku 4.5), and ignore a mark on less at no
cost. https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""
_MARK = {"cache_control": {"type": "ephemeral"}}
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def request_of(name: str, max_tokens: int, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the parameters of a message; neither temperature nor seed is among them.

    Args:
        name: As `anthropic/claude-opus-5-5`.
        max_tokens: Longest answer; the model's thinking counts too.
        messages: The last one is the question, what comes before it is the same for many questions.
    """
    system = "\n\n".join(each["content"] for each in messages if each["role"] == "system")
    chat: list[dict[str, Any]] = [dict(each) for each in messages if each["role"] != "system"]
    shared = len(system) + sum(len(each["content"]) for each in chat[:-1])
    if len(chat) > 1 and shared >= CACHEABLE_CHARS:
        chat[-2]["content"] = _marked(chat[-2]["content"])
    request = {"model": name.partition("/")[2], "max_tokens": max_tokens, "messages": chat}
    if system:
        request["system"] = _marked(system) if len(system) >= CACHEABLE_CHARS else system
    return request


def _marked(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, **_MARK}]


def completion_of(message: Mapping[str, Any]) -> Completion:
    """Read the decoded body of a message; a LookupError, TypeError or AttributeError says that it is none."""
    usage: Mapping[str, Any] = message["usage"]
    read, written = (usage.get(f"cache_{what}_input_tokens") or 0 for what in ("read", "creation"))
    return Completion(
        text="".join(block["text"] for block in message["content"] if block["type"] == "text"),
        finish=_FINISH.get(str(message.get("stop_reason")), "stop"),
        input_tokens=(usage.get("input_tokens") or 0) + read + written,  # it leaves out what the cache had or got
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
