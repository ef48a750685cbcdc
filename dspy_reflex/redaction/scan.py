"""Whether a text can hold anything of the table: a look for signs, before any pattern runs (see `Kind`).

Recording waits for this, so it is made for speed. A sign is searched for only if its rarest character is there. Of signs
that end alike there are too many for that: the text is folded and split, and the ends of its pieces are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from dspy_reflex.redaction.kind import Kind
from dspy_reflex.redaction.table import TABLE

Rows = tuple[int, ...]
"""Places in the table."""

_RARE_FIRST = "~@QZXJVIKYWUGPBCFDLMOHNRTSEA"
_TAIL = 3
"""Characters of a piece that are looked up."""
_FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789-_=>", b"abcdefghijklmnopqrstuvwxyz000000000::::")
_DROPPED = b" .()[]\"'`\\"
"""What may stand between a name and its colon, or between the digits of a number."""
# Most long numbers are times, floats and ids: what a telephone number, a card or an account begins with is looked at.
_NUMBER = re.compile(
    r"(?<![\d.])(?:[2-6]\d{3}[ -]?\d{4,6}[ -]?\d{4}|[2-9]\d\d\)?[ .-]?[2-9]\d\d[ .-]\d{4})"
    r"|(?<![A-Z0-9])[A-Z]{2}\d\d ?[A-Z0-9]{4} ?[A-Z0-9]{3}",
    re.ASCII,
)
_PLUS = re.compile(r"\+[1-9][\d .()-]{7}", re.ASCII)


def _rows(signs: Callable[[Kind], Iterable[str]]) -> Mapping[str, Rows]:
    """Signs, and the rows of the table that have them."""
    found: dict[str, Rows] = {}
    for row, kind in enumerate(TABLE):
        for sign in signs(kind):
            found[sign] = (*found.get(sign, ()), row)
    return found


def _by_tail(signs: Mapping[str, Rows]) -> Mapping[str, tuple[tuple[str, Rows], ...]]:
    """Signs and rows by the characters before a sign's last one."""
    found: dict[str, tuple[tuple[str, Rows], ...]] = {}
    for sign, rows in signs.items():
        tail = sign[-_TAIL - 1 : -1]
        found[tail] = (*found.get(tail, ()), (sign, rows))
    return found


def _folded(raw: bytes) -> str:
    """A text in lower case, all digits `0` and all separators `:`, without what may stand between."""
    return raw.translate(_FOLD, _DROPPED).decode("latin-1")


_LITERALS = tuple(
    (min(sign, key=lambda char: (_RARE_FIRST + char).index(char)), sign, rows)
    for sign, rows in _rows(lambda kind: kind.literals).items()
)
_WORDS = tuple(_rows(lambda kind: kind.words).items())
_ENDS = _by_tail(_rows(lambda kind: dict.fromkeys(_folded(sign.encode()) for sign in kind.ends)))
_NUMBERED = tuple(row for row, kind in enumerate(TABLE) if kind.digits)
_PLUSSED = tuple(row for row, kind in enumerate(TABLE) if kind.plus)


def clears(payload: bytes) -> bool:
    r"""Whether nothing in an event can match any row of the table.

    Args:
        payload: The event as JSON. What JSON escapes as `\uXXXX` is not looked into: such an event is not cleared.

    Returns:
        True only if no row can match; False says nothing.
    """
    return next(_signs(payload), None) is None and b"\\u" not in payload


def suspects(text: str) -> list[Kind]:
    """The rows of the table that may match a text, in the table's order."""
    found = {row for rows in _signs(text.encode("utf-8", "surrogatepass")) for row in rows}
    return [TABLE[row] for row in sorted(found)]


def _signs(raw: bytes) -> Iterator[Rows]:
    """The rows of each sign in a text. Bytes are read as Latin-1: signs are ASCII."""
    text, folded = raw.decode("latin-1"), _folded(raw)
    for rarest, sign, rows in _LITERALS:
        if rarest in text and sign in text:
            yield rows
    for tail in _ENDS.keys() & [piece[-_TAIL:] for piece in folded.split(":")]:
        for sign, rows in _ENDS[tail]:
            if sign in folded:
                yield rows
    for word, rows in _WORDS:
        if word in folded:
            yield rows
    if ("0000000000" in folded or "000:0000" in folded) and _NUMBER.search(text):
        yield _NUMBERED
    if _PLUS.search(text):
        yield _PLUSSED
