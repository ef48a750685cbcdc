"""What an export is to hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from dspy_reflex.finetune.row import TASKS, Task
from dspy_reflex.finetune.rows.behave import Shares


@dataclass(frozen=True)
class Plan:
    """What is wanted."""

    tasks: tuple[Task, ...] = TASKS
    since: datetime | None = None
    """Only rules that were decided on since then, and causes that a person named since then."""
    rules: tuple[str, ...] | None = None
    """Only these proposals, by their ids or the beginnings of them; then no causes beside theirs."""
    split: float | datetime = 0.1
    """What is for validation: a share of families, in [0, 1], or all families that began at a time or later."""
    shares: Shares = field(default_factory=Shares)
