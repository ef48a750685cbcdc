"""Whether a text can hold anything of the table: a look at its bytes for signs, before any pattern runs (see `Kind`).

Most signs are searched for one by one. There are too many prefixes and names for that, so the text is split once at
dashes and underscores, and once at colons and equals signs, and the last three bytes of the pieces are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from dspy_reflex.redaction.kind import Kind
from dspy_reflex.redaction.table import TABLE

_TAIL = 3
_FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789=>", b"abcdefghijklmnopqrstuvwxyz000000000::")
_DROPPED = b" _.()[]\"'`\\"
"""What may stand between a name and its colon, or between the digits of a number, dashes apart."""
# Most long numbers are times, floats and ids: what a telephone number, a card or an account begins with is looked at.
_NUMBER = re.compile(
    r"(?<![\d.])(?:[2-6]\d{3}[ -]?\d{4,6}[ -]?\d{4}|[2-9]\d\d\)?[ .-]?[2-9]\d\d[ .-]\d{4})"
    r"|(?<![A-Z0-9])[A-Z]{2}\d\d ?[A-Z0-9]{4} ?[A-Z0-9]{3}"
)
_PLUS = re.compile(r"\+[1-9][\d .()-]{7}")


Rows = tuple[int, ...]
"""Places in the table."""


def _rows(signs: Callable[[Kind], Iterable[str]]) -> Mapping[str, Rows]:
    """Signs, and the rows of the table that have them."""
    found: dict[str, Rows] = {}
    for row, kind in enumerate(TABLE):
        for sign in signs(kind):
            found[sign] = (*found.get(sign, ()), row)
    return found


def _by_tail(signs: Mapping[str, Rows]) -> Mapping[str, tuple[tuple[str, Rows], ...]]:
    """Signs and rows by the three characters before a sign's last one."""
    found: dict[str, tuple[tuple[str, Rows], ...]] = {}
    for sign, rows in signs.items():
        tail = sign[-_TAIL - 1 : -1]
        found[tail] = (*found.get(tail, ()), (sign, rows))
    return found


_LITERALS = tuple(_rows(lambda kind: kind.literals).items())
_WORDS = tuple(_rows(lambda kind: kind.words).items())
_PREFIXES = _by_tail(_rows(lambda kind: (sign.replace("-", "_") for sign in kind.prefixes)))
_NAMES = _by_tail(_rows(lambda kind: (f"{sign}:" for sign in kind.names)))
_NUMBERED = tuple(row for row, kind in enumerate(TABLE) if kind.digits)
_PLUSSED = tuple(row for row, kind in enumerate(TABLE) if kind.plus)


def clears(payload: bytes) -> bool:
    r"""Whether nothing in an event can match any row of the table.

    Args:
        payload: The event as JSON. What JSON escapes as `\uXXXX` is not looked into: such an event is not cleared.

    Returns:
        True only if no row can match; False says nothing.
    """
    return b"\\u" not in payload and next(_signs(payload), None) is None


def suspects(text: bytes) -> list[Kind]:
    """The rows of the table that may match a text, in the table's order."""
    found = {row for rows in _signs(text) for row in rows}
    return [TABLE[row] for row in sorted(found)]


def _signs(raw: bytes) -> Iterator[Rows]:
    """The rows of each sign in a text; the cheap and the likely first. Bytes are read as Latin-1: signs are ASCII."""
    text = raw.decode("latin-1")
    for sign, rows in _LITERALS:
        if sign in text:
            yield rows
    folded = raw.translate(_FOLD, _DROPPED).decode("latin-1")
    yield from _ending(folded, ":", _NAMES)
    yield from _ending(text.replace("-", "_"), "_", _PREFIXES)
    for sign, rows in _WORDS:
        if sign in folded:
            yield rows
    if ("0000000000" in folded or "000-0000" in folded) and _NUMBER.search(text):
        yield _NUMBERED
    if _PLUS.search(text):
        yield _PLUSSED


def _ending(text: str, end: str, signs: Mapping[str, tuple[tuple[str, Rows], ...]]) -> Iterator[Rows]:
    """The rows of each sign that ends in `end`."""
    for tail in signs.keys() & [piece[-_TAIL:] for piece in text.split(end)]:
        for sign, rows in signs[tail]:
            if sign in text:
                yield rows
