"""Rule books: rules that answered labelled examples, as lines that people and the offline learner can both read.

A book is a heading and one line per rule::

    Rules from labelled examples (for what; seen with):
    - (tool_failure; TOOLS; seen with: 503, retry, gateway) When a call returns 503, wait ...
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dspy_reflex.runtime.lm.offline.features import Features
from dspy_reflex.runtime.lm.offline.learner import rarity_of, unit_vector

HEADING = "Rules from labelled examples (for what; where; seen with):"
LINE = re.compile(r"^- \((.+?); (.*?); seen with: (.*?)\) (.+)$")
WORDS_PER_RULE = 100


@dataclass(frozen=True)
class Entry:
    """One rule and the kind of example it answered."""

    key: str
    """The short input that the rule is for, such as its root cause."""
    place: str
    """The closed-list output that came with it, such as its component."""
    words: tuple[str, ...]
    """The words that marked the example out most."""
    rule: str


def collect(examples: Sequence[tuple[str, str, str, Features]]) -> list[Entry]:
    """Entries out of (key, place, rule, features of the example)."""
    rarity = rarity_of([features for *_, features in examples])
    entries: list[Entry] = []
    for key, place, rule, features in examples:
        vector = {n: v for n, v in unit_vector(features, rarity).items() if ":" not in n and " " not in n}
        words = sorted(vector, key=lambda name: (-vector[name], name))[:WORDS_PER_RULE]
        entries.append(Entry(key, place, tuple(words), " ".join(rule.split())))
    return entries


def write_book(entries: Sequence[Entry]) -> str:
    """The book as text."""
    lines = [f"- ({e.key}; {e.place}; seen with: {', '.join(e.words)}) {e.rule}" for e in entries]
    return "\n".join([HEADING, *lines])


def read_book(text: str) -> list[Entry]:
    """Every entry of every book in a text."""
    matches = (LINE.match(line.strip()) for line in text.splitlines())
    return [Entry(m.group(1), m.group(2), tuple(m.group(3).split(", ")), m.group(4)) for m in matches if m]


def without_books(text: str) -> str:
    """The text with every book taken out."""
    lines = [line for line in text.splitlines() if line.strip() != HEADING and not LINE.match(line.strip())]
    return "\n".join(lines).strip()
