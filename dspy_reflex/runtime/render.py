"""Rebuild the chat messages that DSPy's ChatAdapter would send, byte for byte, from an artefact.

DSPy's messages are a pure function of signature, instructions, demos and inputs. Everything but the inputs was
rendered at export; what is left is the last user message and, for a program that retrieves, the examples before it.
Standard library only. Checked against the installed DSPy by `dspy-reflex programs verify` and in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dspy_reflex.errors import RenderError
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.retrieve import Retrieval


def render(artifact: Artifact, values: Mapping[str, str]) -> list[dict[str, str]]:
    """The messages for one input.

    Args:
        artifact: A checked program.
        values: One text for each of the program's input fields.

    Raises:
        RenderError: A field is missing or is not text.
    """
    asked: dict[str, str] = {}
    for name in artifact.inputs:
        value = values.get(name)
        if not isinstance(value, str):
            raise RenderError(f"{artifact.name}: the input field {name!r} is missing or not text")
        asked[name] = value
    content = "\n\n".join([*_sections(asked), artifact.data["tail"]])
    retrieval = artifact.retrieval
    shown = examples(retrieval, retrieval.index.nearest(asked, retrieval.k)) if retrieval else []
    return [*artifact.data["messages"], *shown, {"role": "user", "content": content}]


def examples(retrieval: Retrieval, numbers: Iterable[int]) -> list[dict[str, str]]:
    """The messages of these examples, a question and an answer each."""
    found: list[dict[str, str]] = []
    for number in numbers:
        asked = "\n\n".join(_sections(retrieval.index.inputs[number]))
        found.append({"role": "user", "content": (retrieval.lead + asked).strip()})  # DSPy strips them, too
        found.append({"role": "assistant", "content": retrieval.answers[number]})
    return found


def _sections(values: Mapping[str, str]) -> list[str]:
    return [f"[[ ## {name} ## ]]\n{value}" for name, value in values.items()]
