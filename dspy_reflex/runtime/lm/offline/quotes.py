"""Quotes that show a cue: the lines of a case in which it stands, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dspy_reflex.runtime.lm.offline.features import SHOWN_BY
from dspy_reflex.runtime.lm.offline.prompt import Fields

MAX_QUOTES = 2
QUOTE_CHARS = 160


def quotes(case: Fields, cues: Sequence[str]) -> list[str]:
    """At most two stretches of text, the late fields first, that hold a cue."""
    found: list[str] = []
    for cue in cues:
        for line in _lines_with(case, _words(cue)):
            if line not in found:
                found.append(line)
                break
        if len(found) == MAX_QUOTES:
            break
    return found


def _words(cue: str) -> list[str]:
    if cue.startswith("<"):
        shown = cue.strip("<>")
        return [word for word, meaning in SHOWN_BY.items() if shown.endswith(meaning)]
    return [cue.partition(":")[2] or cue]


def _lines_with(case: Fields, words: Sequence[str]) -> Iterator[str]:
    """Stretches of text around each place where one of the words stands whole."""
    for text in reversed(list(case.values())):
        for word in words:
            for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE):
                yield _line_at(text, match.start())


def _line_at(text: str, at: int) -> str:
    start = max(text.rfind("\n", 0, at) + 1, at - QUOTE_CHARS // 2)
    end = text.find("\n", at)
    return text[start : len(text) if end < 0 else end][:QUOTE_CHARS].strip()
