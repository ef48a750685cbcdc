"""What a check has to say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from dspy_reflex.evalset.labelled import EvalSet

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (`error`) or suspicious (`warning`) with a data set."""

    check: str
    """The check's name."""
    level: Level
    where: str
    """`file:line`, a split, or the data set."""
    text: str
    """What is the matter and what to do."""


Check = Callable[[EvalSet], Iterable[Finding]]
