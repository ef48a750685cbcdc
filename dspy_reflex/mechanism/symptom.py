"""What was seen: the first symptom of an ordered pattern table that a failure's text shows.

Patterns only, no model: the same text has the same symptom on every machine. The built-in table is `symptoms.toml`
beside this file.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dspy_reflex.errors import ConfigError
from dspy_reflex.mechanism.literals import Literals, folded, has, literals_of

OTHER = "other"
"""The symptom of a text that shows none of the table."""
MAX_CHARS = 20_000
"""A longer text is searched in its first two and its last three fifths of this: how it began and how it ended."""


class Symptom(BaseModel):
    """One entry of a symptom table."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)
    """What `symptom_of` answers."""
    meaning: str
    """One line for people."""
    patterns: tuple[re.Pattern[str], ...]
    """Regular expressions, of which any one in the text will do."""
    examples: tuple[str, ...] = ()
    """Lines that must get this symptom."""

    @field_validator("patterns", mode="before")
    @classmethod
    def _compiled(cls, value: object) -> object:
        return [_compile(item) for item in cast("list[object]", value)] if isinstance(value, list) else value

    @cached_property
    def literals(self) -> tuple[Literals, ...]:
        """What a text must contain for each of the patterns to be worth a search."""
        return tuple(map(literals_of, self.patterns))

    def seen_in(self, text: str, plain: str) -> bool:
        """Whether the text, of which `plain` is the folded form, shows it."""
        pairs = zip(self.patterns, self.literals, strict=True)
        return any(has(plain, needed) and pattern.search(text) for pattern, needed in pairs)


Table = tuple[Symptom, ...]
"""Symptoms in the order in which they are looked for."""


class _File(BaseModel):
    """A symptom file as written."""

    model_config = ConfigDict(extra="forbid")

    symptom: Table = Field(min_length=1)


def symptom_of(text: str, table: Table | None = None) -> str:
    """Name what a text shows.

    Args:
        text: A failure's outcome.
        table: Symptoms in order; None is the built-in table.

    Returns:
        Name of the first symptom seen, `other` if none is.
    """
    text = _window(text)
    entries = default_table() if table is None else table
    plain = folded(text)
    return next((entry.name for entry in entries if entry.seen_in(text, plain)), OTHER)


@cache
def default_table() -> Table:
    """The built-in table, read once."""
    source = files("dspy_reflex.mechanism").joinpath("symptoms.toml")
    return _read(source.read_bytes(), "symptoms.toml")


def load_table(path: Path | str) -> Table:
    """Put the symptoms of a file before the built-in ones.

    A file may name a built-in symptom again, to give it more patterns, or new ones.

    Raises:
        ConfigError: The file cannot be read, or an entry cannot be used.
    """
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; check the path and its permissions") from error
    own = _read(content, str(path))
    idle = next((entry.name for entry in own if not entry.patterns), None)
    if idle is not None:
        raise ConfigError(f"{path}: symptom {idle!r} has no patterns and would never be seen; give it one")
    return (*own, *default_table())


def _read(content: bytes, source: str) -> Table:
    try:
        return _File.model_validate(tomllib.loads(content.decode())).symptom
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 text; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{source}: {where}: {first['msg']}; each [[symptom]] needs name, meaning and patterns"
        ) from error


def _compile(pattern: object) -> object:
    """A pattern ready for use; what is no string is left for pydantic to refuse."""
    if not isinstance(pattern, str):
        return pattern
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


def _window(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    head = MAX_CHARS * 2 // 5
    return f"{text[:head]}\n{text[len(text) - (MAX_CHARS - head) :]}"
