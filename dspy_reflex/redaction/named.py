"""Secrets that are told by their name: `password=…`, `"api_key": "…"`, `Authorization: …`, `curl -u …`."""

from __future__ import annotations

import re
from collections.abc import Callable

from dspy_reflex.redaction.kind import Kind
from dspy_reflex.redaction.values import assigns_password, assigns_secret, is_password, is_secret, sends_secret

# From a name to its value: closing quotes, a bracket after one (not that of a mark), then `:`, `=`, `=>`, `:=` or `>`.
_TO = r"(?P<to>(?:[ \"'`\\)]|(?<=[\"'])\]){0,6}(?::=|=>|[:=>])\s{0,8})"
# In quotes to the same quotes; without, to a blank or a separator, and no bracket or full stop at the end.
_VALUE = (
    r"(?P<quote>\\*[\"'`])?(?P<secret>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\n\\])){1,512}+"
    r"|[^\s\"'`,;&<\\]{3,255}[^\s\"'`,;&<\\.:!?)\]}>]))"
)
_OPEN = r"[\"'`\\]{0,4}"
_PHRASES = ("password", "passwd", "passphrase", "pwd", "_pass", "-pass")
_PHRASE = rf"(?:{'|'.join(_PHRASES)})(?:[_-]?hash)?"
_KEY_OF = (
    "api", "access", "account", "auth", "encryption", "master", "private", "secret", "service", "shared", "signing",
    "subscription",
)  # fmt: skip
# A page token is no secret, and the `secret:` in an ARN is part of a name. Begins at a rare letter, which is the fast way.
_SECRET = (
    r"[CKck](?i:(?<=tok)(?<!nexttok)(?<!next[_-]tok)(?<!pagetok)(?<!page[_-]tok)en"
    r"|(?<=sec)(?<!:sec)ret(?:[_-]?(?:access[_-]?)?key)?"
    rf"|(?:{'|'.join(f'(?<={one}k)|(?<={one}[_-]k)' for one in _KEY_OF)})ey)"
)
_HEADER = r"(?:authorization|cookie)"

NAMED = (
    Kind(
        "authorization",
        rf"(?i:authorization){_TO}{_OPEN}(?P<secret>(?:(?i:basic|bearer|token|apikey|digest|negotiate)\s{{1,4}})?"
        r"[^\s\"'`,;\\]{8,}+)",
        ends=("authorization:",),
        check=sends_secret,
    ),
    Kind(
        "bearer_token",
        r"(?<![A-Za-z])(?:[Bb]earer|BEARER)(?:\s|%20){1,4}(?P<secret>(?=[A-Za-z_.~+/-]{0,200}\d)[\w.~+/-]{16,}+=*)",
        words=("bearer",),
    ),
    Kind(
        "cookie",
        rf"(?i:cookie){_TO}{_OPEN}(?P<secret>[^\s=;\"'`\\]{{1,100}}+=[^\n\"'`\\]{{4,}}+)",
        ends=("cookie:",),
        check=sends_secret,
    ),
    Kind(
        "password",
        rf"(?i:{_PHRASE}){_TO}{_VALUE}",
        ends=tuple(f"{name}{tail}:" for name in _PHRASES for tail in ("", "hash", "_hash")),
        check=assigns_password,
    ),
    Kind("password", rf"--pass(?:word|wd|phrase)?(?P<to> {{1,4}}){_VALUE}", ("--pass",), check=assigns_password),
    Kind(
        "password",
        rf"curl\s[^\n|;]{{0,200}}?\s(?:-u|--user)\s{{0,3}}{_OPEN}[^\s:\"'`\\]{{1,64}}+:(?P<secret>[^\s\"'`\\]{{1,200}}+)",
        literals=("curl",),
        check=sends_secret,
    ),
    Kind(
        "secret",
        rf"{_SECRET}{_TO}{_VALUE}",
        ends=("token:", "secret:", *(f"{one}{dash}key:" for one in _KEY_OF for dash in ("", "_"))),
        check=assigns_secret,
    ),
    Kind("secret", r"[?&]sig=(?P<secret>[\w%+/=-]{20,}+)", ends=("sig=",)),
)
"""What is a secret because of the name before it."""

BY_KEY: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("password", re.compile(rf"(?i){_PHRASE}\Z", re.ASCII), is_password),
    ("authorization", re.compile(rf"(?i){_HEADER}\Z", re.ASCII), is_password),
    ("secret", re.compile(rf"{_SECRET}\Z", re.ASCII), is_secret),
)
"""The same for the keys of a mapping: mark, what the key ends with, and which values are secret."""
