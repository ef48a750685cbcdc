"""A grammar that holds a model to the fields a DSPy prompt asks for, in llama.cpp's notation (GBNF).

Servers can do that for models that are too small to keep to a form: llama.cpp with a grammar, vLLM with structured
outputs. What is asked for stands in the last message: the fields in order, and for some the values that are allowed.
See https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md.
"""

from __future__ import annotations

import json
import re

TEXT_CHARS = 200
"""Longest text of a field, which is one line."""
_ASKED = re.compile(
    r"starting with the field (`\[\[ ## .*), and then ending with the marker for `\[\[ ## completed ## \]\]`"
)
_FIELD = re.compile(r"`\[\[ ## (\w+) ## \]\]`(?: \(must be formatted as a valid Python (\w+(?:\[[^\]]*\])?)\))?")
_CHOICE = re.compile("'([^']*)'")


def grammar_for(question: str) -> str | None:
    """The grammar of an answer to a question.

    Args:
        question: The last message of a chat.

    Returns:
        The rules, or None if the question asks for no fields.
    """
    asked = _ASKED.search(question)
    if asked is None:
        return None
    parts = [_part(name, kind) for name, kind in _FIELD.findall(asked.group(1))]
    root = " ".join([*parts, json.dumps("[[ ## completed ## ]]")])
    return f'root ::= {root}\ntext ::= [^\\n\\[\\]]{{1,{TEXT_CHARS}}}\nnumber ::= "0." [0-9] [0-9]\n'


def _part(name: str, kind: str) -> str:
    """A field: its header, its value, an empty line."""
    value = "number" if kind == "float" else "text"
    if kind.startswith("Literal["):
        value = "(" + " | ".join(json.dumps(choice) for choice in _CHOICE.findall(kind)) + ")"
    header = json.dumps(f"[[ ## {name} ## ]]")
    return f'{header} "\\n" {value} "\\n\\n"'
