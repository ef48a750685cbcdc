"""Hugging Face TRL: conversational prompt-completion, preference and unpaired preference rows.

Source: https://huggingface.co/docs/trl/dataset_formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Message, Said, Shape, messages, turns


class Completion(TypedDict):
    """For `SFTTrainer`: the loss is on the completion."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    completion: list[Message]


class Preference(TypedDict):
    """For `DPOTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]


class Unpaired(TypedDict):
    """For `KTOTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    completion: list[Message]
    label: bool


def _completion(said: Said) -> dict[str, Any]:
    return {"prompt": messages(said.prompt), "completion": messages(said.answer)}


def _preference(said: Said) -> dict[str, Any]:
    pair = {"chosen": messages(said.answer), "rejected": messages(said.rejected)}
    return {"prompt": messages(said.prompt), **pair}


def _unpaired(said: Said) -> dict[str, Any]:
    return {**_completion(said), "label": said.label}


def _read(row: Mapping[str, Any]) -> Said:
    answer = turns(row["completion" if "completion" in row else "chosen"])
    return Said(turns(row["prompt"]), answer, turns(row.get("rejected", ())), row.get("label"))


TRL = Format(
    "trl",
    "TRL's SFTTrainer, DPOTrainer and KTOTrainer; Unsloth",
    {
        "sft": Shape(_completion, _read, Completion),
        "preference": Shape(_preference, _read, Preference),
        "unpaired": Shape(_unpaired, _read, Unpaired),
    },
)
