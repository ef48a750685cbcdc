"""What of the one event a rule copied: it must hold for the next event, and must not carry a name or secret along."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

COPIED_WORDS = 6
"""This many words in a row that are also in the failure are a quotation."""

KINDS = {
    "an e-mail address": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "a URL": re.compile(r"\b(?:https?|ftp|s3|file)://[^\s\"'<>)]+|\bwww\.[^\s\"'<>)]+"),
    "a path": re.compile(r"(?:(?<![\w/])[~.]{0,2}|\b[A-Za-z]:)[/\\][\w.-]+(?:[/\\][\w.-]*)*|\b[\w-]+(?:/[\w.-]+){2,}"),
    "an id": re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])(?=[\w-]{5,})\w[\w-]*\w\b"),
    "a number": re.compile(r"(?<![\w.])\d{3,}(?:[.,]\d+)*(?!\w)"),
    "a quotation": re.compile(
        r"[\"\u201c]([^\"\u201c\u201d]{3,})[\"\u201d]|(?<!\w)['`\u2018]([^'`\u2019]{3,})['`\u2019](?!\w)"
    ),
    "a name": re.compile(r"(?<=[\w,;:)] )[A-Z][a-z]+[A-Za-z]*\b|\b[a-z]+[A-Z]\w+\b"),
}
"""What counts as being of one event, if the event has it too. A name is a capitalised word inside a sentence."""

_COMMON = """
400 401 403 404 408 409 410 412 413 415 422 425 429 500 501 502 503 504 529 utf-8 utf-16 ascii-8 iso-8601 iso8601
8601 rfc3339 3339 sha256 sha-256 base64 http2 ipv4 ipv6 oauth2 int32 int64 float32 float64 python3
json yaml markdown unicode python javascript typescript boolean english monday tuesday wednesday thursday friday
saturday sunday january february march april june july august september october november december
i'm user agent tool
"""
COMMON = frozenset(_COMMON.split())
"""HTTP statuses, formats and calendar words: part of a mechanism, not of one event."""

WORD = re.compile(r"\w+")


def leaks(rule: str, event: str, allowed: Iterable[str]) -> list[str]:
    """What a rule copied from an event, as `a number (4711)`.

    Args:
        rule: The proposed rule.
        event: All text of the failure.
        allowed: Texts whose words are not a leak: the reference rule, the rules that are there.
    """
    permitted = " ".join(allowed)
    pieces = [
        f"{kind} ({text})"
        for kind, pattern in KINDS.items()
        for text in _texts(pattern, rule)
        if text.lower() not in COMMON and _occurs(text, event) and not _occurs(text, permitted)
    ]
    return pieces + [f"a quotation ({quote})" for quote in _copied(rule, event)]


def _texts(pattern: re.Pattern[str], rule: str) -> Iterator[str]:
    for found in pattern.finditer(rule):
        yield next((group for group in found.groups() if group), found[0]).strip(".,;")


def _occurs(text: str, place: str) -> bool:
    """Whether a text is in another as a whole, not inside a longer word or number; in the same case."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", place) is not None


def _copied(rule: str, event: str) -> list[str]:
    """The first run of words that was copied, if there is one."""
    words = WORD.findall(rule.lower())
    text = f" {' '.join(WORD.findall(event.lower()))} "
    runs = (" ".join(words[start : start + COPIED_WORDS]) for start in range(len(words) - COPIED_WORDS + 1))
    copied = next((run for run in runs if f" {run} " in text), None)
    return [copied] if copied else []
