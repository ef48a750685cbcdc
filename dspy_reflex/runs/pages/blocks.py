"""What a document is made of, whatever it is shown in. Texts are as they came: each face makes them safe for itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from dspy_reflex.untrusted import neutralise

LINE_CHARS = 300
"""Longest line of a diff that is shown whole: a cue sheet can have lines of many thousand characters."""

Row = tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table with a head."""

    head: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn only where it is shown."""

    name: str
    """File name, with `.png`."""
    says: str
    """What it shows, for who cannot see it."""
    draw: Callable[[], bytes]


@dataclass(frozen=True)
class Diff:
    """Two texts, as a unified diff."""

    lines: tuple[str, ...]
    """Without line ends; empty if the texts are the same."""

    @classmethod
    def of(cls, before: str, after: str, names: tuple[str, str]) -> Diff:
        """Compare two texts line by line; long lines are cut, and say so."""
        old, new = neutralise(before).split("\n"), neutralise(after).split("\n")
        return cls(tuple(map(_cut, difflib.unified_diff(old, new, *names, lineterm=""))))


Block = Text | Table | Picture | Diff


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """Sections under a title."""

    title: str
    sections: tuple[Section, ...]

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All pictures, in order."""
        blocks = (block for section in self.sections for block in section.blocks)
        return tuple(block for block in blocks if isinstance(block, Picture))


def kind_of(line: str) -> str:
    """What a line of a diff is: `file`, `place`, `added`, `removed` or `same`."""
    if line.startswith(("---", "+++")):
        return "file"
    return {"@": "place", "+": "added", "-": "removed"}.get(line[:1], "same")


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}… ({len(line)} characters)"
