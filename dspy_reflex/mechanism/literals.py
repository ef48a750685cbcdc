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

Texts = frozenset[str]
Literals = tuple[Texts, ...]
"""Sets of texts: one of each set is needed."""


def folded(text: str) -> str:
    """The text as `has` wants it."""
    return text.translate(_EQUALS).lower()


def has(text: str, literals: Literals) -> bool:
    """Whether a folded text has what is needed; of no sets nothing is."""
    for texts in literals:
        for one in texts:  # loops take half the time that `any` does, and this is asked a hundred times a failure
            if one in text:
                break
        else:
            return False
    return True


def literals_of(pattern: re.Pattern[str]) -> Literals:
    """Lower-case texts, case aside, of which every text has some that the pattern is found in."""
    return tuple(_needed(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)))


def _needed(parts: Iterable[tuple[Any, Any]]) -> list[Texts]:
    """What a sequence needs, part by part."""
    found: list[Texts] = []
    run = ""
    for kind, told in parts:
        if str(kind) == "LITERAL" and told < 128:
            run += chr(told).lower()
            continue
        found += [frozenset([run])] if run else []
        run = ""
        found += _needed_by(str(kind), told)
    return [*found, frozenset([run])] if run else found


def _needed_by(kind: str, told: Any) -> list[Texts]:
    if kind == "SUBPATTERN":
        return _needed(told[-1])
    if kind in _REPEATS and told[0] > 0:
        return _needed(told[2])
    ways = [_rarest(_needed(way)) for way in told[1]] if kind == "BRANCH" else []
    return [frozenset[str]().union(*ways)] if ways and all(ways) else []


def _rarest(found: list[Texts]) -> Texts:
    """The set whose shortest text is longest: it will be missed most often."""
    return max(found, key=lambda texts: min(map(len, texts)), default=frozenset[str]())
