"""One kind of secret or personal data: its shape, and the signs without which no text can hold one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    Signs are texts of which at least one is in whatever the pattern matches. They are ASCII, and hold only characters that
    JSON writes as they are: no quote, backslash, slash or control character.
    """

    name: str
    """What the mark in its place says."""
    pattern: str
    """What is replaced: the group `secret` if there is one, else all of it."""
    literals: tuple[str, ...] = ()
    """Signs that are looked for as they are."""
    words: tuple[str, ...] = ()
    """Signs in any case, written here in lower case."""
    ends: tuple[str, ...] = ()
    """Signs that end in one of `-_:=>`, after at least three other characters: prefixes, and names of values. Case and
    which of the five it is do not count."""
    digits: bool = False
    """Whether its sign is a number of at least ten digits."""
    plus: bool = False
    """Whether its sign is a plus and at least eight digits."""
    check: Callable[[re.Match[str]], bool] = lambda _: True
    """What a match must fulfil besides."""
    personal: bool = False
    """Whether it is personal data: it names somebody and unlocks nothing."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first needed: whoever only records clean events never pays for it."""
        return re.compile(self.pattern, re.ASCII)
