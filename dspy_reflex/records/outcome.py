"""A failure as the store keeps it: when it happened, where in the hierarchy, and what was taken out of it."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from dspy_reflex.records.failure import Failure


class LoggedFailure(Failure):
    """A failure that was recorded. Its text was redacted before anything was written."""

    at: AwareDatetime
    """When it happened, in UTC."""
    parent_agent_id: str | None = None
    """The agent that the one which failed works for."""
    redacted: dict[str, int] = Field(default_factory=dict)
    """How many secrets of each kind were taken out."""
