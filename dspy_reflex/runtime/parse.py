"""Read a model's answer in DSPy's chat format back into fields.

The rules are those of DSPy 3.4's ChatAdapter for the three types our programs use (text, number, one of a closed list):
a field starts at a line that begins with `[[ ## name ## ]]`, the first occurrence counts, a choice may be quoted or
wrapped in `Literal[...]`. Where DSPy would repair a broken number we do not guess. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dspy_reflex.errors import AnswerError

HEADER = re.compile(r"\[\[ ## (\w+) ## \]\]")


def parse(outputs: Sequence[Mapping[str, Any]], text: str) -> dict[str, Any]:
    """The output fields of an answer.

    Args:
        outputs: The artefact's output fields: `name`, `type` (`str`, `float` or `choice`) and `choices`.
        text: What the model answered.

    Returns:
        A value for every output field: `str`, `float`, or one of the choices.

    Raises:
        AnswerError: A field is missing or is not of its type.
    """
    found = sections(text)
    fields: dict[str, Any] = {}
    for field in outputs:
        name = field["name"]
        if name not in found:
            raise AnswerError(f"the answer has no field {name!r}")
        fields[name] = _value(field, found[name])
    return fields


def sections(text: str) -> dict[str, str]:
    """The text under each field header, stripped; the first of equal headers wins."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        header = HEADER.match(line.strip())
        if header:
            rest = line[header.end() :].strip()
            parts.append((header.group(1), [rest] if rest else []))
        else:
            parts[-1][1].append(line)
    fields: dict[str, str] = {}
    for name, lines in parts[1:]:
        fields.setdefault(name, "\n".join(lines).strip())
    return fields


def _value(field: Mapping[str, Any], text: str) -> Any:
    match field["type"]:
        case "float":
            return _number(field["name"], text)
        case "choice":
            return _choice(field, text)
        case _:
            return text


def _number(name: str, text: str) -> float:
    try:
        if text.isascii():  # Python would also take digits of other scripts
            return float(text)
    except ValueError:
        pass
    raise AnswerError(f"the field {name!r} is not a number: {text[:60]!r}")


def _choice(field: Mapping[str, Any], text: str) -> str:
    choice = text
    if choice.startswith(("Literal[", "str[")) and choice.endswith("]"):
        choice = choice[choice.find("[") + 1 : -1]
    if len(choice) > 1 and choice[0] == choice[-1] and choice[0] in "\"'":
        choice = choice[1:-1]
    if choice not in field["choices"]:
        raise AnswerError(f"the field {field['name']!r} is none of {', '.join(field['choices'])}: {text[:60]!r}")
    return choice
