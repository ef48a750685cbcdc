"""Text and JSON on their way to and from a database that takes no NUL and no lone surrogate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import orjson
from sqlalchemy import Dialect, Text, TypeDecorator

from dspy_reflex.errors import StoreError

BITS = 64
"""Integers that need more, with their sign, are none to most readers of JSON."""
_HALF = re.compile("[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class SafeText(TypeDecorator[str]):
    """Text in which NUL and lone surrogates, which PostgreSQL refuses, became U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """To the database."""
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """The text without what a database refuses."""
    return _UNSTORABLE.sub("\ufffd", text)


def half_in(text: str) -> str:
    """Where the first lone surrogate of a text is and what to do about it; empty if there is none."""
    found = _HALF.search(text)
    if not found:
        return ""
    return f"character {found.start() + 1} is \\u{ord(found[0]):04x}, half a character; write the whole one or leave it out"


def unstorable(value: Any) -> str:
    """What in a JSON value cannot be kept, where it is, and what to do; empty if all of it can."""
    try:
        orjson.dumps(value)
    except TypeError as error:
        return next(_odd(value), f"{error}; write simpler JSON")
    return ""


def to_json(value: Any) -> str:
    """Compact JSON. NULs stay escaped, and an escape is plain text to a database.

    Raises:
        StoreError: It holds what cannot be kept; says where.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        raise StoreError(f"this cannot be kept: {unstorable(value)}") from None


def _odd(value: Any) -> Iterator[str]:
    """Texts and numbers that cannot be kept, each with its place such as `messages[0].content`."""
    left: list[tuple[str, Any]] = [("", value)]
    while left:
        place, one = left.pop()
        where = f"{place.lstrip('.')}: " if place else ""
        if isinstance(one, str) and (half := half_in(one)):
            yield where + half
        elif isinstance(one, int) and not -(2 ** (BITS - 1)) <= one < 2**BITS:
            yield f"{where}a number of more than {BITS} bits; write it as text"
        elif isinstance(one, dict):
            entries = cast("dict[Any, Any]", one).items()
            left += reversed([(f"{place}{_step(key)}", part) for key, item in entries for part in (key, item)])
        elif isinstance(one, list | tuple):
            items = enumerate(cast("list[Any]", one))
            left += reversed([(f"{place}[{number}]", item) for number, item in items])


def _step(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"


def from_json(text: str) -> Any:
    """The value that `to_json` wrote."""
    return orjson.loads(text)
