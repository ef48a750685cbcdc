"""A rule as one line of a rule file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from dspy_reflex.errors import TargetError
from dspy_reflex.records.record import Component
from dspy_reflex.untrusted import neutralise

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_COMMENT = re.compile(r"<!-{2,}|-{2,}!?>")
"""What opens or closes a comment in HTML; an arrow, `->`, does not."""


@dataclass(frozen=True)
class RuleLine:
    """A rule as it stands in a file: one line, whatever text it was made of.

    Raises:
        TargetError: The id is none, or the text says nothing.
    """

    rule_id: str
    """A letter, then letters, digits, `_`, `.` and `-`."""
    text: str
    """The rule; line ends become spaces, and what could open or close a comment is taken out."""
    added: date
    """The day it was put there, UTC."""
    section: Component | None = None
    """The component it is for, in a file that holds several; None in a file of one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))
        if not _ID.fullmatch(self.rule_id):
            raise TargetError(f"{self.rule_id!r} cannot be a rule's id; take letters, digits, '_', '.' and '-'")
        if not self.text:
            raise TargetError(f"rule {self.rule_id} says nothing; write it anew")

    def __str__(self) -> str:
        """The line, without its end."""
        return f"- [{self.rule_id}] _{self.added.isoformat()}_: {self.text}"


def one_line(text: str) -> str:
    """A rule without line breaks, and without anything that could open or close a comment. Idempotent."""
    while (said := _COMMENT.sub("", " ".join(neutralise(text).split()))) != text:
        text = said
    return said
