"""One reason why a rule may not be approved as it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and what to do about it."""

    name: str
    """The check that found it."""
    advice: str
    """One sentence: what to change."""
