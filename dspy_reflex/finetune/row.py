"""One training example, in no trainer's format yet, and where it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import orjson

Role = Literal["system", "user", "assistant"]
Kind = Literal["sft", "preference", "unpaired", "rewarded"]
"""What a trainer does with a row: imitate, prefer one of two, like or dislike, or weigh by reward."""
Task = Literal["behave", "classify", "propose", "self_edit"]
"""What is learned: to behave as corrected, to name a root cause, to write a rule, to state what to prefer."""
TASKS: tuple[Task, ...] = get_args(Task)
Split = Literal["train", "validation"]


# Turns and lineages have no slots: orjson writes what has a `__dict__` two to five times as fast.
@dataclass(frozen=True)
class Turn:
    """One message; `reward` only where turns are weighed."""

    role: Role
    content: str
    reward: float | None = None
    """Of an assistant's turn, in [0, 1]."""


Turns = tuple[Turn, ...]


@dataclass(frozen=True)
class Lineage:
    """What a row rests on; empty where there is no such thing."""

    failures: tuple[str, ...] = ()
    """Those whose words are in the row."""
    diagnoses: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    """The rule that is taught, first; then others whose words are in the row."""
    review: str = ""
    """The act in which a person approved the rule, or rejected it."""
    programs: tuple[str, ...] = ()
    """What named the causes and wrote the rule, with versions; `person` where one named a cause."""
    rule_sha256: str = ""
    """Of the rule's text as it stands: its version."""
    marked: tuple[str, ...] = ()
    """What a reader should know, such as `eval set: train`."""


class Row(NamedTuple):
    """What is asked, and one answer, or two, to it.

    A question is nothing or a system prompt first, then user and assistant in turns, with the user last. An answer goes on
    in turns and ends with the assistant. Only what is imitated or rewarded has answers of several turns.
    """

    kind: Kind
    task: Task
    prompt: Turns
    answer: Turns
    """What is to be imitated or preferred; the one answer of an unpaired row."""
    lineage: Lineage
    family: str
    """Rows of one family are in one split: they tell of the same mechanism."""
    rejected: Turns = ()
    """The worse answer of a preference."""
    label: bool | None = None
    """Of an unpaired row: whether the answer is a good one."""
    split: Split = "train"
    number: int = 0
    """A hash of what the row says, of 64 bits. The last one is the label, if there is one."""

    @property
    def id(self) -> str:
        """The number as text: the same words have the same id in every export."""
        return f"row_{self.number:016x}"

    def finished(self, split: Split) -> Row:
        """The row in a split, with its number."""
        said = orjson.dumps((self.kind, self.task, self.prompt, self.answer, self.rejected))
        number = int.from_bytes(hashlib.sha256(said).digest()[:8], "big")
        if self.label is not None:
            number = number & ~1 | self.label
        return Row(*self[:-2], split, number)


def number_of(row_id: str) -> int:
    """An id as a number.

    Raises:
        ValueError: It is none.
    """
    return int(row_id.removeprefix("row_"), 16)
