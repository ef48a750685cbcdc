"""Anthropic models on Amazon Bedrock: system prompt apart, user and assistant in turns, no other field.

Source: https://docs.aws.amazon.com/bedrock/latest/userguide/model-customization-prepare.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Limits, Said, Shape, UnfitError, divided, messages
from dspy_reflex.finetune.row import Turn


class Message(TypedDict):
    """A turn of user or assistant."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    role: Literal["user", "assistant"]
    content: str


class Conversation(TypedDict):
    """One conversation of two turns or more."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    system: NotRequired[str]
    messages: list[Message]


def _write(said: Said) -> dict[str, Any]:
    whole = [*said.prompt, *said.answer]
    first = whole[0] if whole[0].role == "system" else None
    rest = whole[1:] if first else whole
    _check([one.role for one in rest], [one.content for one in whole])
    return {"system": first.content, "messages": messages(rest)} if first else {"messages": messages(rest)}


def _read(row: Mapping[str, Any]) -> Said:
    _check([one["role"] for one in row["messages"]], [one["content"] for one in row["messages"]])
    prompt, answer = divided(row["messages"])
    return Said((Turn("system", row["system"]), *prompt) if "system" in row else prompt, answer)


def _check(roles: list[str], contents: list[str]) -> None:
    if len(roles) < 2 or len(roles) % 2 or roles != ["user", "assistant"] * (len(roles) // 2):
        raise UnfitError("user and assistant have to take turns, the user first and the assistant last")
    if not all(text.strip() for text in contents):
        raise UnfitError("a turn without text")


BEDROCK = Format(
    "bedrock",
    "Anthropic models on Amazon Bedrock",
    {"sft": Shape(_write, _read, Conversation)},
    limits=Limits(min_rows=32, max_rows=10_000, max_tokens=32_000),
)
"""Limits are those of Claude 3 Haiku there."""
