"""A run as text that a program can read: steps within a bound, and nothing that tells which step was marked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from dspy_reflex.runtime.inputs import LIMITS
from dspy_reflex.untrusted import clip

EXCERPT_CHARS = LIMITS["context"] - 500
"""Characters of all steps together; the rest is for their headings."""
STEPS_SHOWN = 12
"""Most steps of an excerpt."""
WHO_CHARS = 80
SAYS_NOTHING = ("", "TERMINATE")
"""Turns that only end a run."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a run."""

    who: str
    text: str


def last_words(steps: Sequence[Step]) -> str:
    """What the last step says that says anything."""
    return next((step.text for step in reversed(steps) if step.text.strip() not in SAYS_NOTHING), "")


def around(steps: Sequence[Step], marked: int, key: str) -> str:
    """The steps around the marked one, all cut by the same rule.

    Of a long run `STEPS_SHOWN` steps are kept. Where the marked one stands among them is drawn by lot, from `key`, so
    that its place says nothing.

    Args:
        steps: The whole run.
        marked: Index of the step that the annotators marked.
        key: Seed; the same key gives the same excerpt.
    """
    start = 0
    if len(steps) > STEPS_SHOWN:
        earliest = max(0, marked - STEPS_SHOWN + 1)
        latest = min(marked, len(steps) - STEPS_SHOWN)
        start = random.Random(key).randint(earliest, latest)
    shown = steps[start : start + STEPS_SHOWN]
    heads = [f"[step {number}] {clip(step.who, WHO_CHARS)}: " for number, step in enumerate(shown, start=start)]
    marks = [f"…[{start} earlier steps left out]…"] if start else []
    after = len(steps) - start - len(shown)
    rest = [f"…[{after} later steps left out]…"] if after else []
    room = EXCERPT_CHARS - sum(len(line) + 1 for line in (*marks, *heads, *rest))
    texts = share([step.text.strip() for step in shown], room)
    return "\n".join([*marks, *(head + text for head, text in zip(heads, texts, strict=True)), *rest])


def share(texts: Sequence[str], budget: int) -> list[str]:
    """The texts within a budget: what short ones leave over goes to the long ones, which are cut to one length."""
    left = budget
    for rank, length in enumerate(sorted(map(len, texts))):
        most = left // (len(texts) - rank)
        if length > most:
            return [clip(text, most) for text in texts]
        left -= length
    return list(texts)
