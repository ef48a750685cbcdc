"""A failure that people have labelled, and a set of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dspy_reflex.errors import DatasetError
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.record import Component, Record
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.inputs import cause_inputs

UNLABELLED_SPLITS = ("unknown", "controls")
"""Splits whose rows may have no root cause: nothing could be decided, or nothing went wrong."""


class Vote(BaseModel):
    """What one annotator said about one failure, without having seen what others said."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    annotator: str
    """A name, the same for all votes of one annotator."""
    root_cause: str | None
    """Label of the taxonomy; None for `unknown` and for no failure, of which both mean: blame nothing."""
    second: str | None = None
    """The label that they could defend as well."""


class LabelledFailure(Record):
    """One failure, what a careful reader says about it, and where it comes from.

    Only `failure` is ever shown to a program, and of that only the fields that `runtime.inputs` names.
    """

    failure: Failure
    """What the agent did; fields of the file that have no place here are kept in it and never rendered."""
    root_cause: str | None
    """Label of the taxonomy; None only in the splits `unknown` and `controls`, and where votes say so."""
    also_acceptable: tuple[str, ...] = ()
    """Labels that a careful second reader could defend."""
    component: Component | None = None
    """The rule file that the rule belongs in."""
    reference_rule: str | None = None
    """A rule that would have prevented the failure."""
    key_points: tuple[tuple[str, ...], ...] = ()
    """What a good rule mentions: groups of synonyms, of which one is enough."""
    existing_rules: tuple[str, ...] = ()
    """Rules that the agent had already; a proposal must not repeat them."""
    evidence: tuple[str, ...] = ()
    """Quotes of the failure that decide the label, word for word."""
    votes: tuple[Vote, ...] = ()
    """What each annotator said, before the label was agreed on."""
    adjudication: str | None = None
    """Why the label is what it is, where the votes differ."""
    family: str | None = None
    """The scenario that it was written from."""
    group: str | None = None
    """The question or task that it belongs to, when that occurs more than once."""
    source: str | None = None
    """The data set or run it was taken from."""
    where: str = Field(default="", exclude=True)
    """`file:line`, for messages; not part of the content."""

    @property
    def id(self) -> str:
        """The failure's id; the row hash where the file gave none."""
        return self.failure.id or self.row_hash

    @property
    def unit(self) -> str:
        """What a split must never divide: the group, else the family, else the row.

        A row is named by its text and not by its id, so that the same text under two ids stays together.
        """
        return self.group or self.family or self.row_hash

    @cached_property
    def inputs(self) -> dict[str, str]:
        """The text that a root-cause program sees."""
        return cause_inputs(self.failure.model_dump())

    @cached_property
    def row_hash(self) -> str:
        """First 16 hex digits of the SHA-256 of `inputs`: a row is recognised under another id, too."""
        return row_hash_of(self.inputs)

    def value(self, field: str) -> JsonValue:
        """The value of any field, by its name in the file: of the label, the failure, or an unknown one."""
        if field in LABEL_FIELDS:
            return getattr(self, field)
        return self.failure.model_dump().get(field)


def row_hash_of(inputs: Mapping[str, str]) -> str:
    """The hash of a row whose texts these are."""
    text = json.dumps(dict(inputs), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


OTHER_FIELDS = ("failure", "where", "schema_version")
LABEL_FIELDS = tuple(name for name in LabelledFailure.model_fields if name not in OTHER_FIELDS)
"""The fields of a row that are about the failure and not of it."""


@dataclass(frozen=True)
class EvalSet:
    """Labelled failures by split. A single file is one split named `all`."""

    name: str
    taxonomy: Taxonomy
    splits: Mapping[str, tuple[LabelledFailure, ...]]

    @property
    def rows(self) -> tuple[LabelledFailure, ...]:
        """All rows that have a root cause, split by split."""
        return tuple(row for rows in self.splits.values() for row in rows if row.root_cause is not None)

    def split(self, name: str) -> tuple[LabelledFailure, ...]:
        """The rows of one split.

        Raises:
            DatasetError: There is none of that name.
        """
        if name not in self.splits:
            raise DatasetError(f"{self.name}: there is no split {name!r}; it has {', '.join(self.splits)}")
        return self.splits[name]
