"""Axolotl: `chat_template` rows, with the lines of YAML that name them.

Source: https://docs.axolotl.ai/docs/dataset-formats/conversation.html and …/rlhf.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Message, Said, Shape, messages, only, turns
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS
from dspy_reflex.finetune.row import Kind, Turn

SNIPPETS: Mapping[Kind, str] = {
    "sft": """datasets:
  - path: data/sft/train.jsonl
    ds_type: json
    type: chat_template
    field_messages: messages
""",
    "preference": """rl: dpo
datasets:
  - path: data/preference/train.jsonl
    ds_type: json
    split: train
    type: chat_template.default
    field_messages: messages
    field_chosen: chosen
    field_rejected: rejected
""",
}


class Preference(TypedDict):
    """For `type: chat_template.default`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]
    chosen: Message
    rejected: Message


def _preference(said: Said) -> dict[str, Any]:
    (chosen,), (rejected,) = messages([only(said.answer)]), messages([only(said.rejected)])
    return {"messages": messages(said.prompt), "chosen": chosen, "rejected": rejected}


def _read(row: Mapping[str, Any]) -> Said:
    return Said(turns(row["messages"]), _one(row["chosen"]), _one(row["rejected"]))


def _one(said: Mapping[str, Any]) -> tuple[Turn, ...]:
    return turns([said])


def _beside(kinds: Sequence[Kind]) -> Mapping[str, str]:
    return {f"axolotl-{kind}.yaml": SNIPPETS[kind] for kind in kinds}


AXOLOTL = Format(
    "axolotl",
    "Axolotl's chat_template",
    {"sft": CONVERSATIONS, "preference": Shape(_preference, _read, Preference)},
    _beside,
)
