"""Rebuild the chat messages that DSPy's ChatAdapter would send, byte for byte, from an artefact.

DSPy's messages are a pure function of signature, instructions, demos and inputs. Everything but the inputs was
rendered at export; what is left is the last user message. Standard library only. Checked against the installed DSPy by
`dspy-reflex programs verify` and in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping

from dspy_reflex.errors import RenderError
from dspy_reflex.runtime.artifact import Artifact


def render(artifact: Artifact, values: Mapping[str, str]) -> list[dict[str, str]]:
    """The messages for one input.

    Args:
        artifact: A checked program.
        values: One text for each of the program's input fields.

    Raises:
        RenderError: A field is missing or is not text.
    """
    parts: list[str] = []
    for name in artifact.inputs:
        value = values.get(name)
        if not isinstance(value, str):
            raise RenderError(f"{artifact.name}: the input field {name!r} is missing or not text")
        parts.append(f"[[ ## {name} ## ]]\n{value}")
    content = "\n\n".join([*parts, artifact.data["tail"]])
    return [*artifact.data["messages"], {"role": "user", "content": content}]
