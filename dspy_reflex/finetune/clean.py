"""A second look for secrets and personal data: the table may know more than when a text was stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from dspy_reflex.finetune.row import Row, Turn
from dspy_reflex.redaction.redact import redact
from dspy_reflex.redaction.scan import clears

KEPT = 512
"""Texts whose outcome is remembered: those of one lesson are in several rows."""


def clean(counts: Counter[str], row: Row) -> Row:
    """The row with marks in place of what may not leave; what was taken out is counted by kind."""
    for one in (*row.prompt, *row.answer, *row.rejected):
        if _redacted(one.content) is not None:
            prompt, answer, rejected = (
                tuple(_cleaned(counts, turn) for turn in turns) for turns in (row.prompt, row.answer, row.rejected)
            )
            return row._replace(prompt=prompt, answer=answer, rejected=rejected)
    return row


def _cleaned(counts: Counter[str], turn: Turn) -> Turn:
    found = _redacted(turn.content)
    if found is None:
        return turn
    text, kinds = found
    counts.update(kinds)
    return replace(turn, content=text)


@lru_cache(maxsize=KEPT)
def _redacted(text: str) -> tuple[str, Mapping[str, int]] | None:
    """The text without what may not leave, and what was taken out; None if it is as it was."""
    if clears(text.encode("utf-8", "replace")):
        return None
    found = redact(text)
    return found if found[1] else None
