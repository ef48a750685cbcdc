"""Alpaca rows: instruction, input, output; what was said before in `history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape, UnfitError, only
from dspy_reflex.finetune.row import Turn


class Instruction(TypedDict):
    """One instruction and its output."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    instruction: str
    input: str
    output: str
    system: NotRequired[str]


class Preference(TypedDict):
    """One instruction and two outputs."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    instruction: str
    input: str
    chosen: str
    rejected: str
    system: NotRequired[str]


def _instruction(said: Said) -> dict[str, Any]:
    return {**_asked(said), "output": only(said.answer).content}


def _preference(said: Said) -> dict[str, Any]:
    return {**_asked(said), "chosen": only(said.answer).content, "rejected": only(said.rejected).content}


def _asked(said: Said) -> dict[str, str]:
    *before, last = said.prompt
    if last.role != "user" or [one.role for one in before] not in ([], ["system"]):
        raise UnfitError("the format takes one question, with or without a system prompt")
    asked = {"instruction": last.content, "input": ""}
    return {**asked, "system": before[0].content} if before else asked


def _read(row: Mapping[str, Any]) -> Said:
    question = "\n".join(text for text in (row["instruction"], row["input"]) if text)
    system = (Turn("system", row["system"]),) if "system" in row else ()
    prompt = (*system, Turn("user", question))
    rejected = (Turn("assistant", row["rejected"]),) if "rejected" in row else ()
    return Said(prompt, (Turn("assistant", row["output"] if "output" in row else row["chosen"]),), rejected)


ALPACA = Format(
    "alpaca",
    "anything that reads Alpaca",
    {"sft": Shape(_instruction, _read, Instruction), "preference": Shape(_preference, _read, Preference)},
)
