"""Text and JSON on their way to and from a database that takes no NUL and no lone surrogate."""

from __future__ import annotations

import re
from typing import Any

import orjson
from sqlalchemy import Dialect, Text, TypeDecorator

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


def to_json(value: Any) -> str:
    """Compact JSON. NULs stay escaped, and an escape is plain text to a database."""
    return orjson.dumps(value).decode()


def from_json(text: str) -> Any:
    """The value that `to_json` wrote."""
    return orjson.loads(text)
