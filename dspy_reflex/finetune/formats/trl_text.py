"""Hugging Face TRL: standard rows of plain text, for models without a chat template.

Source: https://huggingface.co/docs/trl/dataset_formats. Turns stand under a line `### Role`; a line of a text that
looks like one is moved in by a blank, so that the way back is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape, UnfitError, divided
from dspy_reflex.finetune.row import Role, Turn

HEADS: Mapping[str, Role] = {"### System": "system", "### User": "user", "### Assistant": "assistant"}
_HEAD_OF = {role: head for head, role in HEADS.items()}
_TURN = re.compile(r"^(### (?:System|User|Assistant))\n", re.MULTILINE)
_LOOKS = re.compile(r"^( *)(?=### (?:System|User|Assistant)$)", re.MULTILINE)
_LOOKED = re.compile(r"^ ( *)(?=### (?:System|User|Assistant)$)", re.MULTILINE)


class Completion(TypedDict):
    """For `SFTTrainer`: the loss is on the completion, which is the last turn."""

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
    return {"prompt": _text([*said.prompt, *said.answer[:-1]]), "completion": _text(said.answer[-1:])}


def _preference(said: Said) -> dict[str, Any]:
    return {"prompt": _text(said.prompt), "chosen": _text(said.answer), "rejected": _text(said.rejected)}


def _unpaired(said: Said) -> dict[str, Any]:
    return {"prompt": _text(said.prompt), "completion": _text(said.answer), "label": said.label}


def _read_completion(row: Mapping[str, Any]) -> Said:
    return Said(*divided(_turns(row["prompt"] + row["completion"])))


def _read_preference(row: Mapping[str, Any]) -> Said:
    return Said(_turns(row["prompt"]), _turns(row["chosen"]), _turns(row["rejected"]))


def _read_unpaired(row: Mapping[str, Any]) -> Said:
    return Said(_turns(row["prompt"]), _turns(row["completion"]), label=row["label"])


def _text(turns: Sequence[Turn]) -> str:
    return "".join(f"{_HEAD_OF[one.role]}\n{_moved_in(one.content)}\n" for one in turns)


def _moved_in(text: str) -> str:
    return _LOOKS.sub(r"\1 ", text)


def _turns(text: str) -> tuple[Turn, ...]:
    before, *parts = _TURN.split(text)
    if before:
        raise UnfitError("a text has to begin with a line ### System, ### User or ### Assistant")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(Turn(HEADS[head], _LOOKED.sub(r"\1", said.removesuffix("\n"))) for head, said in pairs)


FORMAT = Format(
    "trl_text",
    "TRL's trainers, for models without a chat template",
    {
        "sft": Shape(_completion, _read_completion, Completion),
        "preference": Shape(_preference, _read_preference, Preference),
        "unpaired": Shape(_unpaired, _read_unpaired, Unpaired),
    },
)
