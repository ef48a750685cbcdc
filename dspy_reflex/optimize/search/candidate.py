"""What is known of one candidate of a search."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Candidate:
    """A program that was tried, and what it answered."""

    number: int
    module: Any
    prompt_chars: int
    demos: int
    predictions: dict[str, Any] = field(default_factory=dict[str, Any])
    points: dict[str, float] = field(default_factory=dict[str, float])
    """The metric of each row, by row hash."""
    value: float | None = None
    """The criterion over the rows asked so far; None when it has to be worked out."""
    dropped: bool = False
    calls: int = 0
    tokens: int = 0
    """What the whole compile had used when this one was last scored."""

    @property
    def mean(self) -> float:
        """The metric over the rows asked so far."""
        return statistics.fmean(self.points.values()) if self.points else 0.0

    def gaps(self, leader: Candidate) -> list[float]:
        """Points more than the leader's, on each row that it was asked."""
        return [points - leader.points[row] for row, points in self.points.items()]
