"""A document as Markdown; pictures are files beside it."""

from __future__ import annotations

import re

from dspy_reflex.benchmark.markdown import safe, table
from dspy_reflex.runs.pages.blocks import Block, Diff, Document, Picture, Table, Text


def render(document: Document) -> str:
    """The whole document."""
    parts = [f"# {safe(document.title)}"]
    for section in document.sections:
        parts += [f"## {safe(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return safe(text)
        case Table(head, rows):
            return table(head, rows)
        case Picture(name, says):
            return f"![{safe(says)}]({name})"
        case Diff(lines):
            return _fenced("\n".join(lines))


def _fenced(text: str) -> str:
    """A diff in a fence that no line of it can close."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}diff\n{text}\n{fence}"
