"""DSPy's own fine-tuning rows: chats for `LM.finetune` and `BootstrapFinetune`, groups with rewards for its GRPO.

Source: `dspy.clients.utils_finetune` of DSPy 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Answer, Format, Message, Said, Shape, UnfitError, messages, turns
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS
from dspy_reflex.finetune.row import Turn


class Rewarded(TypedDict):
    """An answer to a chat, and what it was worth in [0, 1]."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]
    completion: Answer
    reward: float


class Group(TypedDict):
    """Answers of one conversation, from first to last."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    batch_id: int | None
    """DSPy's trainer fills it in."""
    group: list[Rewarded]


def _group(said: Said) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    before = list(said.prompt)
    for one in said.answer:
        if one.role == "assistant" and one.reward is not None:
            (told,) = messages([one])
            found.append({"messages": messages(before), "completion": told, "reward": one.reward})
        before.append(one)
    return {"batch_id": None, "group": found}


def _read(row: Mapping[str, Any]) -> Said:
    if not row["group"]:
        raise UnfitError("a group without an answer")
    first, last = row["group"][0], row["group"][-1]
    prompt = turns(first["messages"])
    rewards = {len(one["messages"]): one["reward"] for one in row["group"]}
    whole = turns([*last["messages"], last["completion"]])
    answer = tuple(
        Turn(one.role, one.content, rewards.get(place)) for place, one in enumerate(whole) if place >= len(prompt)
    )
    return Said(prompt, answer)


FORMAT = Format(
    "dspy",
    "DSPy's LM.finetune, BootstrapFinetune and GRPO",
    {"sft": CONVERSATIONS, "rewarded": Shape(_group, _read, Group)},
)
