"""Take a chat prompt apart, as any reader of it could: what is asked, the examples given, and the case at hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dspy_reflex.runtime.parse import sections

CHOICES = re.compile(r'\{(\w+)\} +# note: the value you produce must exactly match [^\n]*? one of: ([^"\n]+)')
OUTPUT_FIELD = re.compile(r"^\d+\. `(\w+)` \((.+?)\):", re.MULTILINE)
OBJECTIVE = "your objective is:"
OUTPUTS = "Your output fields are:"
JSON_FORMAT = "Outputs will be a JSON object"
NOT_SUPPLIED = "Not supplied for this"

Fields = Mapping[str, str]


@dataclass(frozen=True)
class Demo:
    """One worked example in the prompt."""

    inputs: Fields
    outputs: Fields


@dataclass(frozen=True)
class Task:
    """What does not change between two questions to one program."""

    instructions: str
    outputs: Mapping[str, str]
    """Name of each output field and its type as the prompt states it."""
    choices: Mapping[str, tuple[str, ...]]
    """Output fields that must be one of a closed list."""
    demos: tuple[Demo, ...]
    as_json: bool
    """Whether the answer has to be a JSON object instead of marked sections."""


def read_task(messages: Sequence[Mapping[str, str]]) -> Task:
    """The task that all messages but the last one set."""
    system = "\n".join(m["content"] for m in messages if m["role"] == "system")
    head, _, objective = system.partition(OBJECTIVE)
    outputs = dict(OUTPUT_FIELD.findall(head.partition(OUTPUTS)[2]))
    choices = {name: tuple(text.split("; ")) for name, text in CHOICES.findall(head)}
    as_json = JSON_FORMAT in head
    if not objective:  # a bare chat, not one of DSPy's: everything said is the instruction
        objective = system
    instructions = "\n".join(line.strip() for line in objective.strip().splitlines())
    return Task(instructions, outputs, choices, tuple(_demos(messages[:-1])), as_json)


def read_case(messages: Sequence[Mapping[str, str]]) -> Fields:
    """The input fields of the last message."""
    fields = sections(messages[-1]["content"]) if messages else {}
    if fields:  # the reminder of the answer's form stands under the last field
        last = list(fields)[-1]
        fields[last] = _without_reminder(fields[last])
    return fields


def write(task: Task, fields: Fields) -> str:
    """An answer in the form asked for."""
    if task.as_json:
        return json.dumps(dict(fields), ensure_ascii=False)
    parts = [f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def _without_reminder(text: str) -> str:
    for start in ("Respond with the corresponding output fields", "Respond with a JSON object"):
        head, found, _ = text.rpartition(start)
        if found:
            return head.strip()
    return text


def _demos(messages: Sequence[Mapping[str, str]]) -> list[Demo]:
    demos: list[Demo] = []
    asked: Fields = {}
    for message in messages:
        if message["role"] == "user":
            asked = sections(message["content"])
        elif message["role"] == "assistant" and asked:
            demos.append(Demo(asked, _supplied(message["content"])))
    return demos


def _supplied(content: str) -> Fields:
    fields = sections(content) or _json_object(content)
    return {name: text for name, text in fields.items() if not text.startswith(NOT_SUPPLIED)}


def _json_object(content: str) -> dict[str, str]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in value.items()} if _is_object(value) else {}


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
