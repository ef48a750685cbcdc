"""What was decided about which program is current for a model: one line of a library's history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, ConfigDict, Field

from dspy_reflex.records.record import Record

Action = Literal["first", "guide", "promote", "refuse", "rollback"]
"""The first program of its model became current, a label set was written as one, a candidate won, it did not, or a previous
one came back."""


class Move(Record):
    """One decision. A refusal is one as well: it, too, has looked at the test set."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)

    at: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    """When, in UTC."""
    action: Action
    """What was done."""
    model: str
    """The model whose current program it is about."""
    before: str | None = Field(default=None, validation_alias="from", serialization_alias="from")
    """Version that was current; None if none was. `from` in the file."""
    after: str = Field(validation_alias="to", serialization_alias="to")
    """Version that became current, or with `refuse` would have. `to` in the file."""
    reason: str
    """Why, in one sentence."""
    by: str | None = None
    """Who decided, where somebody wanted to be named."""
    partial: bool = False
    """Whether the compile of `after` was cut short."""
    against: str | None = None
    """What it was compared with: a version, or `uncompiled`; None if nothing was compared."""
    dataset: str | None = None
    """Name of the test set."""
    rows: str | None = None
    """Digest of the test set's rows: the same failures have the same one, whatever their file is called."""
    n: int = 0
    """Failures compared on."""
    margin: float | None = None
    """How much worse a cheaper candidate was allowed to be."""
    difference: float | None = None
    """Score of the candidate minus that of `against`."""
    interval: tuple[float, float] | None = None
    """95 % interval of the difference."""
    mcnemar_p: float | None = None
    """Exact, two-sided, on accuracy; None for rules, which are not right or wrong."""
