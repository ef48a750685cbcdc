"""ShareGPT rows: `from` and `value`, with `human` and `gpt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Format, Said, Shape, UnfitError, divided, only
from dspy_reflex.finetune.row import Role, Turn

NAMES: Mapping[Role, str] = {"system": "system", "user": "human", "assistant": "gpt"}
ROLES: Mapping[str, Role] = {name: role for role, name in NAMES.items()}


Message = TypedDict("Message", {"from": Literal["human", "gpt"], "value": str})
Message.__pydantic_config__ = STRICT  # type: ignore[attr-defined]


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
    chosen: Message
    rejected: Message


def _conversation(said: Said) -> dict[str, Any]:
    return _talk([*said.prompt, *said.answer])


def _preference(said: Said) -> dict[str, Any]:
    return {**_talk(said.prompt), "chosen": _message(only(said.answer)), "rejected": _message(only(said.rejected))}


def _talk(turns: Sequence[Turn]) -> dict[str, Any]:
    first = turns[0] if turns and turns[0].role == "system" else None
    rest = turns[1:] if first else turns
    if [one.role for one in rest] != [("user", "assistant")[place % 2] for place in range(len(rest))]:
        raise UnfitError("user and assistant have to take turns")
    said = {"conversations": [_message(one) for one in rest]}
    return {"system": first.content, **said} if first else said


def _read_conversation(row: Mapping[str, Any]) -> Said:
    return Said(*divided([{"role": one.role, "content": one.content} for one in _turns(row)]))


def _read_preference(row: Mapping[str, Any]) -> Said:
    return Said(_turns(row), (_turn(row["chosen"]),), (_turn(row["rejected"]),))


def _turns(row: Mapping[str, Any]) -> tuple[Turn, ...]:
    system = (Turn("system", row["system"]),) if "system" in row else ()
    return (*system, *map(_turn, row["conversations"]))


def _message(turn: Turn) -> dict[str, str]:
    return {"from": NAMES[turn.role], "value": turn.content}


def _turn(said: Mapping[str, Any]) -> Turn:
    return Turn(ROLES[said["from"]], said["value"])


CONVERSATIONS = Shape(_conversation, _read_conversation, Conversation)
PREFERENCES = Shape(_preference, _read_preference, Preference)

SHAREGPT = Format("sharegpt", "anything that reads ShareGPT", {"sft": CONVERSATIONS, "preference": PREFERENCES})
