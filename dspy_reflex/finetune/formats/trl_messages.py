"""Hugging Face TRL: conversational language modelling, whole conversations in one list.

Source: https://huggingface.co/docs/trl/dataset_formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Message, Said, Shape, divided, messages, turns


class Conversation(TypedDict):
    """One conversation."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]


def write(said: Said) -> dict[str, Any]:
    """Question and answer in one list."""
    return {"messages": messages([*said.prompt, *said.answer])}


def read(row: Mapping[str, Any]) -> Said:
    """The way back."""
    return Said(*divided(turns(row["messages"])))


CONVERSATIONS = Shape(write, read, Conversation)

FORMAT = Format("trl_messages", "TRL's SFTTrainer, for the loss on whole conversations", {"sft": CONVERSATIONS})
