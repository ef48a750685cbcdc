"""Plain Parquet: every row as it is, with its rewards, for tools of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape
from dspy_reflex.finetune.row import Turn


class Message(TypedDict):
    """A turn, with what it was worth."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    role: Literal["system", "user", "assistant"]
    content: str
    reward: float | None


class Plain(TypedDict):
    """Every field there is; empty where a kind has none."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    prompt: list[Message]
    answer: list[Message]
    rejected: list[Message]
    label: bool | None


def _write(said: Said) -> dict[str, Any]:
    sides = {"prompt": said.prompt, "answer": said.answer, "rejected": said.rejected}
    return {**{name: _messages(side) for name, side in sides.items()}, "label": said.label}


def _read(row: Mapping[str, Any]) -> Said:
    prompt, answer, rejected = (_turns(row[name]) for name in ("prompt", "answer", "rejected"))
    return Said(prompt, answer, rejected, row["label"])


def _messages(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    return [{"role": one.role, "content": one.content, "reward": one.reward} for one in turns]


def _turns(said: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    return tuple(Turn(one["role"], one["content"], one["reward"]) for one in said)


_PLAIN = Shape(_write, _read, Plain)

FORMAT = Format(
    "parquet",
    "pandas, Polars, DuckDB, Spark, and trainers of one's own",
    {"sft": _PLAIN, "preference": _PLAIN, "unpaired": _PLAIN, "rewarded": _PLAIN},
    suffix="parquet",
)
