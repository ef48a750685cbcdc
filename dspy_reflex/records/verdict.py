"""Whether a rule helped: its failures per 1,000 outcomes before and after it was applied."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from dspy_reflex.records.record import Record

Finding = Literal["helped", "no evidence", "worse", "too few"]
"""What the counts say. `too few`: not even an end of these failures could be told from chance yet."""


class Side(Record):
    """What was seen on one side of a rule."""

    outcomes: int = Field(ge=0)
    """Finished runs, good or bad, of the agents that the rule is for."""
    failures: int = Field(ge=0)
    """Those that failed by the rule's root cause and with its symptom."""
    undiagnosed: int = Field(ge=0)
    """Failures that nobody has diagnosed yet, so that they may be of this kind or not."""
    per_1000: float = Field(ge=0.0, le=1000.0)
    """Failures of this kind per 1,000 outcomes."""
    low: float = Field(ge=0.0, le=1000.0)
    """Lower end of the 95 % interval of that rate."""
    high: float = Field(ge=0.0, le=1000.0)
    """Its upper end."""


class Verdict(Record):
    """What was seen of one rule at one time."""

    id: str
    """`verdict_` and a ULID."""
    proposal_id: str
    """The rule's proposal."""
    at: AwareDatetime
    """When it was looked at."""
    verdict: Finding
    """What the counts say."""
    since: AwareDatetime
    """Where the time before begins."""
    applied_at: AwareDatetime
    """When the rule went into its file: where the time before ends and the time after begins."""
    until: AwareDatetime
    """Where the time after ends."""
    before: Side
    """The time before."""
    after: Side
    """The time after, of the same length."""
    change_low: float
    """Lower end of the 95 % interval of the change, in failures per 1,000 outcomes; below 0 is fewer."""
    change_high: float
    """Its upper end."""
    p_value: float = Field(ge=0.0, le=1.0)
    """Probability of a change at least as odd if the rule changed nothing."""
    burst: float = Field(ge=1.0)
    """How far failures come in bursts: so many count as one. 1 where they come one by one."""
    more_outcomes: int | None = None
    """About how many outcomes are missing where there are too few; None if none are, or no number would do."""
    look: int = Field(ge=1)
    """Which look at this rule this was. Looking often finds something in the end."""
