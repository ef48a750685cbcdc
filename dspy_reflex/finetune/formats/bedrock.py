"""Anthropic models on Amazon Bedrock: system prompt apart, user and assistant in turns, no other field.

Source: https://docs.aws.amazon.com/bedrock/latest/userguide/model-customization-prepare.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import (
    STRICT,
    Format,
    Limits,
    Said,
    Shape,
    divided,
    messages,
    turns,
    without_system,
)
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
    messages: Annotated[list[Message], Field(min_length=2)]


def _write(said: Said) -> dict[str, Any]:
    system, rest = without_system([*said.prompt, *said.answer])
    return {**({} if system is None else {"system": system}), "messages": messages(rest)}


def _read(row: Mapping[str, Any]) -> Said:
    prompt, answer = divided(turns(row["messages"]))
    return Said((Turn("system", row["system"]), *prompt) if "system" in row else prompt, answer)


FORMAT = Format(
    "bedrock",
    "Anthropic models on Amazon Bedrock",
    {"sft": Shape(_write, _read, Conversation)},
    limits=Limits(min_rows=32, max_rows=10_000, max_tokens=32_000),
)
"""Limits are those of Claude 3 Haiku there."""
