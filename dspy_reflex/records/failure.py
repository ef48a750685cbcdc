"""One failure of one agent, as a logger saw it."""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from dspy_reflex.records.record import Record, Severity


class Failure(Record):
    """What an agent was asked, what was expected, and what came out instead.

    Unknown fields are kept (`model_extra`) and never rendered into a prompt.
    """

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    id: str = Field(default="", max_length=200)
    """Identifier; empty when the source gave none."""
    agent_id: str = ""
    """Who failed."""
    task: str
    """What the agent was asked to do."""
    expected_outcome: str | None = None
    """What should have come out; None when nobody wrote it down."""
    actual_outcome: str
    """What came out."""
    severity: Severity = "medium"
    """How bad it was."""
    context: JsonValue = None
    """Whatever else the logger had: trace, messages, tool calls, configuration."""
