"""A closed set of root causes, each with the words that tell it from its neighbours."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property

from pydantic import Field, model_validator

from dspy_reflex.records.record import Record

NO_SECOND = "none"
"""What a program answers for the second choice when it has none; therefore never a label."""


class RootCause(Record):
    """One label of a taxonomy."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/ -]*$", max_length=80)
    """The label, as programs answer it."""
    definition: str
    """When it is this."""
    boundary: str = ""
    """When it is not this, and what it is then."""
    example: str = ""
    """One failure that is plainly this."""
    remedy: str = ""
    """What a rule against it usually asks for, as an imperative."""


class Taxonomy(Record):
    """An ordered, closed label set."""

    name: str
    """Short name, as in `--taxonomy NAME`."""
    causes: tuple[RootCause, ...] = Field(min_length=2)
    """The labels, in the order in which they are asked about."""
    guide: str = ""
    """How to choose between them: the question order and the ties."""

    @model_validator(mode="after")
    def _labels_are_distinct(self) -> Taxonomy:
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("a label occurs twice")
        if NO_SECOND in self.labels:
            raise ValueError(f"{NO_SECOND!r} cannot be a label: programs answer it for 'no second choice'")
        return self

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label names, in order."""
        return tuple(cause.name for cause in self.causes)

    @cached_property
    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 of the taxonomy's content (canonical JSON)."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
