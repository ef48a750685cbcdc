"""ShareGPT rows: `from` and `value`, with `human` and `gpt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape, divided, only, without_system
from dspy_reflex.finetune.row import Role, Turn

NAMES: Mapping[Role, str] = {"user": "human", "assistant": "gpt"}
ROLES: Mapping[str, Role] = {name: role for role, name in NAMES.items()}


Message = TypedDict("Message", {"from": Literal["human", "gpt"], "value": str})
Message.__pydantic_config__ = STRICT  # type: ignore[attr-defined]
Answer = TypedDict("Answer", {"from": Literal["gpt"], "value": str})
Answer.__pydantic_config__ = STRICT  # type: ignore[attr-defined]


class Conversation(TypedDict):
    """One conversation; human and gpt take turns."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    system: NotRequired[str]
    conversations: list[Message]


class Preference(TypedDict):
    """A conversation that ends with a question, and two answers."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    system: NotRequired[str]
    conversations: list[Message]
    chosen: Answer
    rejected: Answer


def _conversation(said: Said) -> dict[str, Any]:
    return _talk([*said.prompt, *said.answer])


def _preference(said: Said) -> dict[str, Any]:
    return {**_talk(said.prompt), "chosen": _message(only(said.answer)), "rejected": _message(only(said.rejected))}


def _talk(turns: Sequence[Turn]) -> dict[str, Any]:
    system, rest = without_system(turns)
    return {**({} if system is None else {"system": system}), "conversations": [_message(one) for one in rest]}


def _read_conversation(row: Mapping[str, Any]) -> Said:
    return Said(*divided(_turns(row)))


def _read_preference(row: Mapping[str, Any]) -> Said:
    return Said(_turns(row), (_turn(row["chosen"]),), (_turn(row["rejected"]),))


def _turns(row: Mapping[str, Any]) -> tuple[Turn, ...]:
    system = (Turn("system", row["system"]),) if "system" in row else ()
    return (*system, *map(_turn, row["conversations"]))


def _message(turn: Turn) -> dict[str, str]:
    return {"from": NAMES[turn.role], "value": turn.content}


def _turn(said: Mapping[str, Any]) -> Turn:
    return Turn(ROLES[said["from"]], said["value"])


FORMAT = Format(
    "sharegpt",
    "anything that reads ShareGPT",
    {
        "sft": Shape(_conversation, _read_conversation, Conversation),
        "preference": Shape(_preference, _read_preference, Preference),
    },
)
