"""What `result.json` and `predictions.jsonl` of a compile say, as far as a reader needs it.

What is missing is empty, and what is not known is passed over, so that runs of older and newer versions can be read.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """A part of a result: frozen, numbers finite, other fields passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Score(Part):
    """A score in [0, 1] with its interval."""

    metric: str
    value: Share
    interval: tuple[Share, Share]
    n: Count
    on: str = ""
    """What it was measured on."""


class Scores(Score):
    """The compiled program's score, and that of the same program before compiling, on the same rows."""

    uncompiled: Score | None = None


class Candidate(Part):
    """One program that an optimizer tried."""

    candidate: int
    score: Share | None = None
    """What it was chosen by; None if it got none."""
    rows: Count = 0
    """How many rows it was scored on."""
    dropped: bool = False
    """Whether it was given up before it had seen all rows."""
    best: bool = False
    calls: Count = 0
    """Of the whole run, up to here; so are `tokens`."""
    tokens: Count = 0
    prompt_tokens: Count | None = None
    """Length of its fixed messages: what every later question costs on top of its input."""
    demos: Count | None = None


class Usage(Part):
    """Calls and tokens."""

    calls: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0


class Phase(Usage):
    """What one phase of a compile used."""

    refusals: Count = 0
    unusable: Count = 0
    replayed: Count = 0
    """Answers that the journal had."""


class ModelUsage(Usage):
    """What one model was asked for."""

    usd: float | None = None
    """None if its price is not known."""


class Bill(Part):
    """What a compile cost, once by phase and once by model."""

    phases: dict[str, Phase] = {}
    models: dict[str, ModelUsage] = {}
    seconds: float | None = None

    @property
    def tokens(self) -> int | None:
        """Of all models; None if nobody counted."""
        used = self.models.values()
        return sum(each.input_tokens + each.output_tokens for each in used) if used else None

    @property
    def usd(self) -> float | None:
        """Of all models; None if the price of one is not known."""
        costs = [each.usd for each in self.models.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None


class CurvePoint(Part):
    """The score of a program that was compiled on fewer rows."""

    rows: Count
    value: Share
    interval: tuple[Share, Share] | None = None


class Result(Part):
    """The outcome of a compile."""

    program: str
    """Program and version."""
    optimizer: str = ""
    partial: str | None = None
    """Why it stopped before it was through; None if it did not."""
    scores: Scores
    calls: Count = 0
    candidates: tuple[Candidate, ...] = ()
    ledger: Bill = Bill()
    coverage: dict[str, Count] = {}
    """Label to its number of demos."""
    calibration: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    learning_curve: tuple[CurvePoint, ...] | None = None
    finished: str | None = None
    """When, in UTC; None in runs that do not say."""


class Prediction(Part):
    """What the compiled program told of one row of val."""

    id: str
    gold: str | None = None
    """Its root cause."""
    told: str | None = None
    """The root cause that was answered; None if there was no usable answer, and for rules."""
    confidence: Share | None = None
    """As the program stated it, before calibration."""
    problem: str = ""
    """Why there was no usable answer: `refusal` or `unparsable`."""
    score: Share | None = None
    """Of the rule that was proposed; None for root causes, which are right or wrong."""
    unit: str | None = None
    """Its family or group: what is resampled as a whole; None for the row itself."""

    @property
    def right(self) -> bool:
        """Whether it was told as people have it."""
        return self.told is not None and self.told == self.gold
