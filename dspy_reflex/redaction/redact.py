"""Take secrets and personal data out of texts and JSON values; what is taken out is counted by kind.

A mark says what stood there: `[redacted:github_token]`. Redacting twice is redacting once. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, cast

from dspy_reflex.redaction.kind import Kind
from dspy_reflex.redaction.named import BY_KEY
from dspy_reflex.redaction.scan import suspects

Counts = dict[str, int]
"""How many of each kind were redacted; empty for nothing."""
MAX_ROUNDS = 4
"""Secrets that touch hide each other: a short prefix is not looked for inside a word, and behind a mark it is in none."""
_SEAM = re.compile(r"\w\[redacted:|\[redacted:\w+\]\w", re.ASCII)


def redact(text: str) -> tuple[str, Counts]:
    """Redact one text; linear in its length."""
    counts: Counts = {}
    return _redacted(text, suspects(text), counts), counts


def redact_value(value: Any) -> tuple[Any, Counts]:
    """Redact every string in a JSON value, keys included, and the values of keys that name a secret.

    Args:
        value: Mappings, lists, tuples, strings, numbers, not nested without end (see `untrusted.plain`); anything else
            comes back as it is.

    Returns:
        The value, the same if there was nothing to redact and else built anew, and what was taken out. Keys that have
        become the same get a number, so that no entry is lost.
    """
    counts: Counts = {}
    kinds = suspects("\n".join(_strings(value)))
    return (_walk(value, kinds, counts) if kinds else value), counts


def mark(name: str) -> str:
    """What stands where something of a kind was."""
    return f"[redacted:{name}]"


def _redacted(text: str, kinds: list[Kind], counts: Counts) -> str:
    """The text without what any kind matches; once more where a mark has come to touch a word."""
    for _ in range(MAX_ROUNDS):
        before = text
        for kind in kinds:
            text = _without(text, kind, counts)
        if text == before or not _SEAM.search(text):
            break
        kinds = suspects(text)
    return text


def _without(text: str, kind: Kind, counts: Counts) -> str:
    """The text with a mark for each match of one kind. What is refused may hold another: the search goes on inside it."""
    pieces: list[str] = []
    done = at = 0
    while found := kind.regex.search(text, at):
        if not kind.check(found):
            at = found.start() + 1
            continue
        start, at = found.span("secret") if "secret" in kind.regex.groupindex else found.span()
        pieces += (text[done:start], mark(kind.name))
        done = at
        counts[kind.name] = counts.get(kind.name, 0) + 1
    return "".join((*pieces, text[done:])) if pieces else text


def _strings(value: Any) -> Iterator[str]:
    """All texts of a value in which a sign could be, each key with the colon that makes it a name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int):
        yield str(value)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield f"{key}:"
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from _strings(item)


def _walk(value: Any, kinds: list[Kind], counts: Counts) -> Any:
    if isinstance(value, str):
        return _redacted(value, kinds, counts)
    if isinstance(value, bool) or not isinstance(value, int | Mapping | list | tuple):
        return value
    if isinstance(value, int):
        return _number(value, kinds, counts)
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value), kinds, counts)
    return [_walk(item, kinds, counts) for item in cast("list[Any]", value)]


def _mapping(value: Mapping[Any, Any], kinds: list[Kind], counts: Counts) -> dict[Any, Any]:
    clean: dict[Any, Any] = {}
    for key, item in value.items():
        name = _secret_by_key(key, item)
        if name:
            counts[name] = counts.get(name, 0) + 1
        clean[_free(_walk(key, kinds, counts), clean)] = mark(name) if name else _walk(item, kinds, counts)
    return clean


def _secret_by_key(key: object, item: object) -> str | None:
    """The kind of secret that a key says its value is."""
    if not isinstance(key, str) or isinstance(item, bool) or not isinstance(item, str | int):
        return None
    return next((name for name, ends, is_one in BY_KEY if ends.search(key) and is_one(str(item))), None)


def _free(key: Any, taken: Mapping[Any, Any]) -> Any:
    """The key, or with the first number that makes it new."""
    if key not in taken:
        return key
    return next(new for number in count(2) if (new := f"{key} ({number})") not in taken)


def _number(value: int, kinds: list[Kind], counts: Counts) -> Any:
    """A card's number may have lost its quotes."""
    text = str(value)
    clean = _redacted(text, kinds, counts)
    return value if clean == text else clean
