"""What a text must contain for a pattern to be found in it: a search for plain words costs a hundredth of a pattern's.

The parser is the standard library's own, under `re`. A pattern of which it tells nothing is simply always searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

_parser = import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
# Letters that a pattern takes for ASCII ones when case does not matter (the table of `re`), and `lower` does not.
_EQUALS = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})

Literals = frozenset[str]


def folded(text: str) -> str:
    """The text as `contains_any` wants it."""
    return text.translate(_EQUALS).lower()


def contains_any(text: str, literals: Literals | None) -> bool:
    """Whether a folded text has one of these; None are had by every text."""
    if literals is None:
        return True
    for one in literals:  # noqa: SIM110 - half the time that `any` takes, and it is asked a hundred times a failure
        if one in text:
            return True
    return False


def literals_of(pattern: re.Pattern[str]) -> Literals | None:
    """Lower-case texts of which one is in every text that the pattern is found in, case aside; None if none is known."""
    return _needed(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def _needed(parts: Iterable[tuple[Any, Any]]) -> Literals | None:
    """The best of what a sequence needs: the set whose shortest text is longest."""
    found: list[Literals] = []
    run = ""
    for kind, told in parts:
        if str(kind) == "LITERAL" and told < 128:
            run += chr(told).lower()
            continue
        found += [frozenset([run])] if run else []
        run = ""
        inner = _needed_by(str(kind), told)
        found += [inner] if inner else []
    found += [frozenset([run])] if run else []
    return max(found, key=lambda texts: min(map(len, texts)), default=None)


def _needed_by(kind: str, told: Any) -> Literals | None:
    if kind == "SUBPATTERN":
        return _needed(told[-1])
    if kind in _REPEATS and told[0] > 0:
        return _needed(told[2])
    if kind != "BRANCH":
        return None
    ways = [_needed(way) for way in told[1]]
    return frozenset(text for way in ways for text in way or ()) if all(ways) else None
