"""One training example, in no trainer's format yet, and where it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson

Role = Literal["system", "user", "assistant"]
Kind = Literal["sft", "preference", "unpaired", "rewarded"]
"""What a trainer does with a row: imitate, prefer one of two, like or dislike, or weigh by reward."""
Task = Literal["behave", "classify", "propose", "self_edit"]
"""What is learned: to behave as corrected, to name a root cause, to write a rule, to state what to prefer."""
Split = Literal["train", "validation"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message; `reward` only where turns are weighed."""

    role: Role
    content: str
    reward: float | None = None
    """Of an assistant's turn, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a row rests on; empty where there is no such thing."""

    failure: str = ""
    diagnosis: str = ""
    """Program that named the cause, or `person`."""
    proposal: str = ""
    review: str = ""
    program: str = ""
    """Program and version that proposed the rule."""
    rule_sha256: str = ""
    """Of the rule's text as approved: its version."""
    marked: tuple[str, ...] = ()
    """What a reader should know, such as `eval set: train`."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is asked, and one answer, or two, to it."""

    kind: Kind
    task: Task
    prompt: tuple[Turn, ...]
    """Ends with what is to be answered."""
    answer: tuple[Turn, ...]
    """What is to be imitated or preferred; the one answer of an unpaired row."""
    lineage: Lineage
    family: str
    """Rows of one family are in one split: they tell of the same mechanism."""
    rejected: tuple[Turn, ...] = ()
    """The worse answer of a preference."""
    label: bool | None = None
    """Of an unpaired row: whether the answer is a good one."""
    split: Split = "train"
    id: str = field(default="")
    """`row_` and 16 hex digits of what the row says and rests on: the same row has the same id in every export."""

    def identified(self) -> Row:
        """The row with its id."""
        said = [self.kind, self.task, self.prompt, self.answer, self.rejected, self.label, self.lineage]
        digest = hashlib.sha256(orjson.dumps(said)).hexdigest()
        return replace(self, id=f"row_{digest[:16]}")


def number_of(row_id: str) -> int:
    """An id as a number, which takes less room.

    Raises:
        ValueError: It is none.
    """
    return int(row_id.removeprefix("row_"), 16)
