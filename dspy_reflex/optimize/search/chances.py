"""Whether a candidate may still become the best: its points less the leader's, row by row, as far as it was asked."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

BEHIND = 1.0
"""Standard errors that a candidate must lie behind the leader to be dropped; one-sided, about 84 %."""
ALIKE = 0.5
"""Share of val on which a candidate must get the leader's points, row by row, to be dropped as no better."""


def is_dropped(gaps: Sequence[float], rows: int) -> bool:
    """Whether the interval of the difference lies below 0, or there was none on much of val.

    One that has answered much of val just as the leader did is not worth the rest: it would be as good.

    Args:
        gaps: Points more than the leader's on each row so far, at least two.
        rows: All of val.
    """
    return _is_behind(gaps) or _is_alike(gaps, len(gaps), rows)


def is_promising(gaps: Sequence[float], first: int, by_then: int, rows: int) -> bool:
    """Whether it will most likely not be dropped.

    A first block tells little: as long as no more is known, only one that does as well as the leader is promising.

    Args:
        gaps: Points more than the leader's on each row so far, at least one.
        first: Rows of a first block.
        by_then: Rows that are answered when it might be dropped.
        rows: All of val.
    """
    holds = sum(gaps) >= 0 or (len(gaps) > first and not _is_behind(gaps))
    return holds and not _is_alike(gaps, by_then, rows)


def _is_behind(gaps: Sequence[float]) -> bool:
    error = statistics.stdev(gaps) / len(gaps) ** 0.5
    return statistics.fmean(gaps) + BEHIND * error < 0


def _is_alike(gaps: Sequence[float], by_then: int, rows: int) -> bool:
    return not any(gaps) and by_then >= ALIKE * rows
