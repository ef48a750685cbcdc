"""Axolotl: `chat_template` rows, with the lines of YAML that name them.

Source: https://docs.axolotl.ai/docs/dataset-formats/conversation.html and …/rlhf.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from dspy_reflex.finetune.formats.base import STRICT, Answer, Format, Message, Said, Shape, messages, only, turns
from dspy_reflex.finetune.formats.trl_messages import CONVERSATIONS

USE = {"train": "datasets", "validation": "test_datasets"}
SETTINGS = {
    "sft": ("", "    type: chat_template\n    field_messages: messages\n"),
    "preference": (
        "rl: dpo\n",
        "    type: chat_template.default\n"
        "    field_messages: messages\n    field_chosen: chosen\n    field_rejected: rejected\n",
    ),
}
"""Of each kind: what stands at the top of a configuration, and at every file."""


class Preference(TypedDict):
    """For `type: chat_template.default`."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    messages: list[Message]
    chosen: Answer
    rejected: Answer


def _preference(said: Said) -> dict[str, Any]:
    (chosen,), (rejected,) = messages([only(said.answer)]), messages([only(said.rejected)])
    return {"messages": messages(said.prompt), "chosen": chosen, "rejected": rejected}


def _read(row: Mapping[str, Any]) -> Said:
    return Said(turns(row["messages"]), turns([row["chosen"]]), turns([row["rejected"]]))


PREFERENCES = Shape(_preference, _read, Preference)


def _beside(files: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files):
        kind, _, split = file.partition("/")
        top, each = SETTINGS[kind]
        said = f"{USE[split]}:\n  - path: data/{file}.jsonl\n    ds_type: json\n    split: train\n{each}"
        name = f"axolotl-{kind}.yaml"
        found[name] = found.get(name, top) + said
    return found


FORMAT = Format("axolotl", "Axolotl's chat_template", {"sft": CONVERSATIONS, "preference": PREFERENCES}, _beside)
