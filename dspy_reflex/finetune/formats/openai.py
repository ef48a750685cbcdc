"""OpenAI's chat and DPO rows, which Together, Fireworks and Azure take as well.

OpenAI's own self-serve fine-tuning takes no new jobs after 6 January 2027; the format lives on elsewhere.
Source: https://developers.openai.com/api/docs/guides/supervised-fine-tuning, …/direct-preference-optimization and
…/deprecations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import (
    STRICT,
    Answer,
    Format,
    Limits,
    Message,
    Said,
    Shape,
    messages,
    only,
    turns,
)
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS

One = Annotated[list[Answer], Field(min_length=1, max_length=1)]
"""One message of the assistant."""


class Input(TypedDict):
    """What is asked. `tools` and `parallel_tool_calls` may stand here, too; our rows call none."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]


class Preference(TypedDict):
    """Two answers to one question."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    input: Input
    preferred_output: One
    non_preferred_output: One


def _preference(said: Said) -> dict[str, Any]:
    return {
        "input": {"messages": messages(said.prompt)},
        "preferred_output": messages([only(said.answer)]),
        "non_preferred_output": messages([only(said.rejected)]),
    }


def _read(row: Mapping[str, Any]) -> Said:
    better, worse = turns(row["preferred_output"]), turns(row["non_preferred_output"])
    return Said(turns(row["input"]["messages"]), better, worse)


FORMAT = Format(
    "openai",
    "Together, Fireworks, Azure; OpenAI itself takes no new self-serve jobs after 6 January 2027",
    {"sft": CONVERSATIONS, "preference": Shape(_preference, _read, Preference)},
    limits=Limits(min_rows=10, max_tokens=65_536),
)
