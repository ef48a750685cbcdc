"""Whether what stands behind a name like `password` or `token` is a secret, or only talks about one."""

from __future__ import annotations

import re

# Nothing, a type, a variable, a template, or a word of the message that complains about the secret.
_STANDS_FOR_ONE = re.compile(
    r"(?:none|null|nil|true|false|undefined|empty|unset|required|missing|invalid|incorrect|wrong|expired|hidden|str|string"
    r"|bytes|secretstr|object|optional\b.*|x+|[*.\u2022_-]+|<.*|\$\{?[a-z_]\w*\}?|\$\(.*|%(?:\(\w+\))?[sdr]|\{+[^{}]*\}*"
    r"|your[_-].*|my[_-].*|\[redacted.*|\[filtered\]?|(?:os|self|args|config|cfg|settings|process|env)\.\w.*)",
    re.IGNORECASE | re.ASCII,
)
# Where the secret is kept, not the secret.
_PLACE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|arn:|op:|vault:|env:|file:|~/|\.{1,2}/|/[a-z][\w.-]*(?:/|$)|[A-Za-z]:\\)", re.ASCII
)
_WORD = re.compile(r"[A-Za-z_.-]+")
_DIGIT = re.compile(r"\d", re.ASCII)
_LETTER = re.compile(r"[A-Za-z]")
_BLANK = re.compile(r"\s")
_SELF_NAMED = re.compile(r"passw|pwd|passphrase|secret|token|key", re.IGNORECASE)
MIN_SECRET = 8
"""A shorter key or token is a word or a number."""
LONG = 20
"""A quoted value of this many characters without a blank is no word."""


def is_password(value: str) -> bool:
    """Whether a quoted value, or one under a key of its own, is a password: anything but a stand-in or a place."""
    return bool(value.strip()) and not _STANDS_FOR_ONE.fullmatch(value) and not _PLACE.match(value)


def is_secret(value: str) -> bool:
    """Whether a quoted value is a key or token: one long word with a digit, or a very long one."""
    long_enough = len(value) >= LONG or (len(value) >= MIN_SECRET and _DIGIT.search(value))
    return bool(long_enough) and not _BLANK.search(value) and is_password(value)


def assigns_password(found: re.Match[str]) -> bool:
    """Whether `password = value` gives one away; without quotes, a mere word has to stand close to its `=`."""
    value = found["secret"]
    if not found["quote"] and _WORD.fullmatch(value):
        named = _SELF_NAMED.search(value) or "." in value or "_" in value
        return found["to"] == "=" and not named and is_password(value)
    return is_password(value)


def assigns_secret(found: re.Match[str]) -> bool:
    """Whether `token = value` gives one away; without quotes, it needs letters and digits."""
    value = found["secret"]
    if not found["quote"] and not (_LETTER.search(value) and _DIGIT.search(value)):
        return False
    return is_secret(value)


def sends_secret(found: re.Match[str]) -> bool:
    """Whether a header has a value."""
    return is_password(found["secret"])
