"""Alpaca rows: instruction, input, output; what was said before in `history`, in pairs.

Source: https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape, divided, only, without_system
from dspy_reflex.finetune.row import Turn

Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
"""A question and its answer."""


class Instruction(TypedDict):
    """One instruction and its output."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    instruction: str
    input: str
    output: str
    system: NotRequired[str]
    history: NotRequired[list[Pair]]


class Preference(TypedDict):
    """One instruction and two outputs."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    instruction: str
    input: str
    chosen: str
    rejected: str
    system: NotRequired[str]
    history: NotRequired[list[Pair]]


def _instruction(said: Said) -> dict[str, Any]:
    *before, last = *said.prompt, *said.answer
    return {**_asked(before), "output": last.content}


def _preference(said: Said) -> dict[str, Any]:
    return {**_asked(said.prompt), "chosen": only(said.answer).content, "rejected": only(said.rejected).content}


def _asked(turns: Sequence[Turn]) -> dict[str, Any]:
    system, rest = without_system(turns)
    *earlier, last = [one.content for one in rest]
    asked: dict[str, Any] = {"instruction": last, "input": ""}
    if system is not None:
        asked["system"] = system
    if earlier:
        asked["history"] = [list(pair) for pair in zip(earlier[::2], earlier[1::2], strict=True)]
    return asked


def _read_instruction(row: Mapping[str, Any]) -> Said:
    return Said(*divided((*_turns(row), Turn("assistant", row["output"]))))


def _read_preference(row: Mapping[str, Any]) -> Said:
    return Said(_turns(row), (Turn("assistant", row["chosen"]),), (Turn("assistant", row["rejected"]),))


def _turns(row: Mapping[str, Any]) -> tuple[Turn, ...]:
    system = [Turn("system", row["system"])] if "system" in row else []
    earlier = [turn for one, other in row.get("history", ()) for turn in (Turn("user", one), Turn("assistant", other))]
    asked = "\n".join(text for text in (row["instruction"], row["input"]) if text)
    return (*system, *earlier, Turn("user", asked))


FORMAT = Format(
    "alpaca",
    "anything that reads Alpaca",
    {
        "sft": Shape(_instruction, _read_instruction, Instruction),
        "preference": Shape(_preference, _read_preference, Preference),
    },
)
