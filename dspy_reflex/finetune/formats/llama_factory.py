"""LLaMA-Factory: ShareGPT-like rows with OpenAI's names, and the `dataset_info.json` that tells it so.

Source: https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.axolotl import PREFERENCES
from dspy_reflex.finetune.formats.base import STRICT, Format, Message, Said, Shape, messages, only, turns
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS

TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}
COLUMNS = {
    "sft": {"messages": "messages"},
    "preference": {"messages": "messages", "chosen": "chosen", "rejected": "rejected"},
    "unpaired": {"messages": "messages", "kto_tag": "label"},
}


class Unpaired(TypedDict):
    """For KTO: the last turn is what is liked or not."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]
    label: bool


def _unpaired(said: Said) -> dict[str, Any]:
    return {"messages": messages([*said.prompt, only(said.answer)]), "label": said.label}


def _read_unpaired(row: Mapping[str, Any]) -> Said:
    whole = turns(row["messages"])
    return Said(whole[:-1], whole[-1:], label=row["label"])


def _beside(files: Sequence[str]) -> Mapping[str, str]:
    info = {f"reflex_{file.replace('/', '_')}": _entry(file) for file in files}
    return {"dataset_info.json": json.dumps(info, indent=2, sort_keys=True) + "\n"}


def _entry(file: str) -> dict[str, Any]:
    kind = file.partition("/")[0]
    told = {"file_name": f"data/{file}.jsonl", "formatting": "sharegpt", "columns": COLUMNS[kind], "tags": TAGS}
    return {**told, "ranking": True} if kind == "preference" else told


FORMAT = Format(
    "llama_factory",
    "LLaMA-Factory, with its dataset_info.json",
    {
        "sft": CONVERSATIONS,
        "preference": PREFERENCES,
        "unpaired": Shape(_unpaired, _read_unpaired, Unpaired),
    },
    _beside,
)
