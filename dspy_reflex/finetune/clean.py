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


def clean(row: Row, counts: Counter[str]) -> Row:
    """The row with marks in place of what may not leave; what was taken out is counted by kind."""
    prompt, answer, rejected = (_cleaned(side, counts) for side in (row.prompt, row.answer, row.rejected))
    if prompt is row.prompt and answer is row.answer and rejected is row.rejected:
        return row
    return replace(row, prompt=prompt, answer=answer, rejected=rejected)


def _cleaned(turns: tuple[Turn, ...], counts: Counter[str]) -> tuple[Turn, ...]:
    found = [_redacted(one.content) for one in turns]
    if all(text is None for text, _ in found):
        return turns
    for _, kinds in found:
        counts.update(kinds)
    return tuple(
        one if text is None else replace(one, content=text) for one, (text, _) in zip(turns, found, strict=True)
    )


@lru_cache(maxsize=KEPT)
def _redacted(text: str) -> tuple[str | None, Mapping[str, int]]:
    """The text without what may not leave, None if it is as it was; and what was taken out."""
    if clears(text.encode("utf-8", "replace")):
        return None, {}
    clean_text, kinds = redact(text)
    return (clean_text if kinds else None), kinds
