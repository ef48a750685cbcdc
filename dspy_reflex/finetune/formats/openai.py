"""OpenAI's chat and DPO rows, which Together, Fireworks and Azure take as well.

OpenAI's own self-serve fine-tuning takes no new jobs after 6 January 2027; the format lives on elsewhere.
Source: https://platform.openai.com/docs/guides/supervised-fine-tuning and …/direct-preference-optimization.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Limits, Message, Said, Shape, messages, only, turns
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS


class Input(TypedDict):
    """What is asked."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]


class Preference(TypedDict):
    """One answer of one message each."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    input: Input
    preferred_output: list[Message]
    non_preferred_output: list[Message]


def _preference(said: Said) -> dict[str, Any]:
    return {
        "input": {"messages": messages(said.prompt)},
        "preferred_output": messages([only(said.answer)]),
        "non_preferred_output": messages([only(said.rejected)]),
    }


def _read(row: Mapping[str, Any]) -> Said:
    better, worse = turns(row["preferred_output"]), turns(row["non_preferred_output"])
    return Said(turns(row["input"]["messages"]), (only(better),), (only(worse),))


OPENAI = Format(
    "openai",
    "Together, Fireworks, Azure; OpenAI itself takes no new self-serve jobs after 6 January 2027",
    {"sft": CONVERSATIONS, "preference": Shape(_preference, _read, Preference)},
    limits=Limits(min_rows=10, max_tokens=65_536),
)
