"""LLaMA-Factory: ShareGPT-like rows with OpenAI's names, and the `dataset_info.json` that tells it so.

Source: https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.axolotl import Preference
from dspy_reflex.finetune.formats.base import STRICT, Format, Message, Said, Shape, divided, messages, only, turns
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS
from dspy_reflex.finetune.row import Kind

TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}
COLUMNS: Mapping[Kind, dict[str, str]] = {
    "sft": {"messages": "messages"},
    "preference": {"messages": "messages", "chosen": "chosen", "rejected": "rejected"},
    "unpaired": {"messages": "messages", "kto_tag": "label"},
}


class Unpaired(TypedDict):
    """For KTO."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]
    label: bool


def _preference(said: Said) -> dict[str, Any]:
    (chosen,), (rejected,) = messages([only(said.answer)]), messages([only(said.rejected)])
    return {"messages": messages(said.prompt), "chosen": chosen, "rejected": rejected}


def _read_preference(row: Mapping[str, Any]) -> Said:
    return Said(turns(row["messages"]), turns([row["chosen"]]), turns([row["rejected"]]))


def _unpaired(said: Said) -> dict[str, Any]:
    return {"messages": messages([*said.prompt, *said.answer]), "label": said.label}


def _read_unpaired(row: Mapping[str, Any]) -> Said:
    return Said(*divided(row["messages"]), label=row["label"])


def _beside(kinds: Sequence[Kind]) -> Mapping[str, str]:
    info = {f"reflex_{kind}": _entry(kind) for kind in kinds}
    return {"dataset_info.json": json.dumps(info, indent=2, sort_keys=True) + "\n"}


def _entry(kind: Kind) -> dict[str, Any]:
    told = {"file_name": f"data/{kind}/train.jsonl", "formatting": "sharegpt", "columns": COLUMNS[kind], "tags": TAGS}
    return {**told, "ranking": True} if kind == "preference" else told


LLAMA_FACTORY = Format(
    "llama_factory",
    "LLaMA-Factory, with its dataset_info.json",
    {
        "sft": CONVERSATIONS,
        "preference": Shape(_preference, _read_preference, Preference),
        "unpaired": Shape(_unpaired, _read_unpaired, Unpaired),
    },
    _beside,
)
