"""Hugging Face TRL: conversational prompt-completion, preference and unpaired preference rows.

Source: https://huggingface.co/docs/trl/dataset_formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Answer, Format, Message, Said, Shape, divided, messages, turns


class Completion(TypedDict):
    """For `SFTTrainer`: the loss is on the completion.

    Of an answer of several turns, that is the last: what the user says in between would be learned, too.
    """

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    completion: list[Answer]


class Preference(TypedDict):
    """For `DPOTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    chosen: list[Answer]
    rejected: list[Answer]


class Unpaired(TypedDict):
    """For `KTOTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    completion: list[Answer]
    label: bool


def _completion(said: Said) -> dict[str, Any]:
    return {"prompt": messages([*said.prompt, *said.answer[:-1]]), "completion": messages(said.answer[-1:])}


def _preference(said: Said) -> dict[str, Any]:
    pair = {"chosen": messages(said.answer), "rejected": messages(said.rejected)}
    return {"prompt": messages(said.prompt), **pair}


def _unpaired(said: Said) -> dict[str, Any]:
    return {"prompt": messages(said.prompt), "completion": messages(said.answer), "label": said.label}


def _read_completion(row: Mapping[str, Any]) -> Said:
    return Said(*divided(turns([*row["prompt"], *row["completion"]])))


def _read_preference(row: Mapping[str, Any]) -> Said:
    return Said(turns(row["prompt"]), turns(row["chosen"]), turns(row["rejected"]))


def _read_unpaired(row: Mapping[str, Any]) -> Said:
    return Said(turns(row["prompt"]), turns(row["completion"]), label=row["label"])


FORMAT = Format(
    "trl",
    "TRL's SFTTrainer, DPOTrainer and KTOTrainer; Unsloth",
    {
        "sft": Shape(_completion, _read_completion, Completion),
        "preference": Shape(_preference, _read_preference, Preference),
        "unpaired": Shape(_unpaired, _read_unpaired, Unpaired),
    },
)
