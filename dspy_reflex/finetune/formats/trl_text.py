"""Hugging Face TRL: standard rows of plain text, for models without a chat template.

Source: https://huggingface.co/docs/trl/dataset_formats. Turns stand under a line `### Role`; a line of a text that
looks like one is moved in by a blank, so that the way back is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape, UnfitError
from dspy_reflex.finetune.row import Role, Turn

HEADS: Mapping[str, Role] = {"### System": "system", "### User": "user", "### Assistant": "assistant"}
_TURN = re.compile(r"^(### (?:System|User|Assistant))\n", re.MULTILINE)
_LOOKS = re.compile(r"^( *)(?=### (?:System|User|Assistant)$)", re.MULTILINE)
_LOOKED = re.compile(r"^ ( *)(?=### (?:System|User|Assistant)$)", re.MULTILINE)


class Completion(TypedDict):
    """For `SFTTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: str
    completion: str


class Preference(TypedDict):
    """For `DPOTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: str
    chosen: str
    rejected: str


class Unpaired(TypedDict):
    """For `KTOTrainer`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: str
    completion: str
    label: bool


def _completion(said: Said) -> dict[str, Any]:
    return {"prompt": _text(said.prompt), "completion": _text(said.answer)}


def _preference(said: Said) -> dict[str, Any]:
    return {"prompt": _text(said.prompt), "chosen": _text(said.answer), "rejected": _text(said.rejected)}


def _unpaired(said: Said) -> dict[str, Any]:
    return {**_completion(said), "label": said.label}


def _read(row: Mapping[str, Any]) -> Said:
    answer = row["completion" if "completion" in row else "chosen"]
    return Said(_turns(row["prompt"]), _turns(answer), _turns(row.get("rejected", "")), row.get("label"))


def _text(turns: Sequence[Turn]) -> str:
    heads = {role: head for head, role in HEADS.items()}
    return "".join(f"{heads[one.role]}\n{_moved_in(one.content)}\n" for one in turns)


def _moved_in(text: str) -> str:
    return _LOOKS.sub(r"\1 ", text)


def _turns(text: str) -> tuple[Turn, ...]:
    before, *parts = _TURN.split(text)
    if before:
        raise UnfitError("a text has to begin with a line ### System, ### User or ### Assistant")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(Turn(HEADS[head], _LOOKED.sub(r"\1", said.removesuffix("\n"))) for head, said in pairs)


TRL_TEXT = Format(
    "trl_text",
    "TRL's trainers, for models without a chat template",
    {
        "sft": Shape(_completion, _read, Completion),
        "preference": Shape(_preference, _read, Preference),
        "unpaired": Shape(_unpaired, _read, Unpaired),
    },
)
