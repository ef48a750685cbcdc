"""Answers in the form that the compiled programs ask for, so that a model trained on them can run the programs."""

from __future__ import annotations

from collections.abc import Mapping

from dspy_reflex.finetune.row import Role, Turn
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.render import render


def question(program: Artifact, inputs: Mapping[str, str]) -> tuple[Turn, ...]:
    """What a program asks, without examples: instructions and one input."""
    first, *_, last = render(program, inputs)
    return tuple(Turn(_role(message["role"]), message["content"]) for message in (first, last))


def answer(program: Artifact, fields: Mapping[str, str]) -> tuple[Turn, ...]:
    """An answer in DSPy's chat format, every output field of the program in its order."""
    told = [f"[[ ## {field['name']} ## ]]\n{fields[field['name']]}" for field in program.data["outputs"]]
    return (Turn("assistant", "\n\n".join([*told, "[[ ## completed ## ]]"])),)


def _role(name: str) -> Role:
    return "system" if name == "system" else "user"
