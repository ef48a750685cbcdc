"""How things stand, from counts alone: as fast with a million outcomes as with none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dspy_reflex.store.counts import by_state, count, quarantined
from dspy_reflex.store.spending import spent_today
from dspy_reflex.store.store import Store


@dataclass(frozen=True)
class Status:
    """Numbers of the days asked for; proposals, quarantine and money are as of now, of all agents."""

    good: int
    failures: dict[str, int]
    """By severity."""
    causes: dict[str, int]
    """Diagnosed failures by root cause; empty for those on which no program could say one."""
    undiagnosed: int
    """Failures that were never diagnosed."""
    proposals: dict[str, int]
    """By state."""
    quarantined: int
    """Lines and bytes that could not be read; `doctor` shows them."""
    lost: int
    """Events that recorders could not write, as far as one could tell it later."""
    spent_today_usd: float
    """What models cost since midnight UTC."""

    @property
    def outcomes(self) -> int:
        """Finished runs, good or bad."""
        return self.good + sum(self.failures.values())


def status(store: Store, *, since: datetime | None = None, agents: Sequence[str] | None = None) -> Status:
    """How things stand: of whole days since then, and of these agents."""
    with store.read() as connection:
        counts = count(connection, since=since, agents=agents)
        return Status(
            counts.good, counts.failures, counts.causes, counts.undiagnosed, by_state(connection),
            quarantined(connection), counts.lost, spent_today(connection),
        )  # fmt: skip
