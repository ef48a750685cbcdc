"""What all records share: frozen, versioned, and the severity scale."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Severity = Literal["low", "medium", "high", "critical"]
"""How bad a failure was, from the agent owner's point of view."""

Component = Literal["SOUL", "AGENTS", "TOOLS"]
"""The rule file a rule belongs in: SOUL for values that hold everywhere, AGENTS for ways of working, TOOLS for tools."""


class Record(BaseModel):
    """A frozen record. `schema_version` rises when a stored record could no longer be read as it was meant."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    schema_version: Literal[1] = 1
    """Version of the record's shape."""
