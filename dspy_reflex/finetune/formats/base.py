"""What a format is: how a row is written for a trainer, how it is read back, and what a written row must look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dspy_reflex.finetune.row import Kind, Turn

STRICT = ConfigDict(extra="forbid", strict=True)


class UnfitError(Exception):
    """A row cannot be said in a format; the message says why, in a few words that are the same for all such rows."""


@dataclass(frozen=True, slots=True)
class Said:
    """What of a row a format keeps: everything but where it came from."""

    prompt: tuple[Turn, ...]
    answer: tuple[Turn, ...]
    rejected: tuple[Turn, ...] = ()
    label: bool | None = None


@dataclass(frozen=True)
class Shape:
    """One kind of row in one format."""

    write: Callable[[Said], dict[str, Any]]
    """What a trainer reads; raises `UnfitError` where the format has no words for it."""
    read: Callable[[Mapping[str, Any]], Said]
    """The way back."""
    row: Any
    """A TypedDict: the fields, and no others."""

    @cached_property
    def _checker(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.row)

    def problem(self, row: object) -> str:
        """What is wrong with a written row; empty if nothing is."""
        try:
            self.read(self._checker.validate_python(row))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except UnfitError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class Limits:
    """What a service takes at most; None where nothing is stated."""

    min_rows: int | None = None
    max_rows: int | None = None
    max_tokens: int | None = None
    """Of one row."""


@dataclass(frozen=True)
class Format:
    """What one trainer, or several, take."""

    name: str
    about: str
    """Who takes it, in a line for people."""
    shapes: Mapping[Kind, Shape]
    beside: Callable[[Sequence[Kind]], Mapping[str, str]] = field(default=lambda _: {})
    """Files that the trainer wants beside the rows, by name: of these kinds."""
    suffix: Literal["jsonl", "parquet"] = "jsonl"
    limits: Limits = field(default_factory=Limits)


class Message(TypedDict):
    """A turn as most trainers have it."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    role: Literal["system", "user", "assistant"]
    content: str


def messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Turns as most trainers take them."""
    return [{"role": one.role, "content": one.content} for one in turns]


def turns(said: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The way back."""
    return tuple(Turn(one["role"], one["content"]) for one in said)


def divided(said: Sequence[Mapping[str, Any]]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """A conversation as question and answer: the answer begins behind the last turn before the first assistant's.

    Raises:
        UnfitError: Nobody asks, or nobody answers at the end.
    """
    whole = turns(said)
    first = next((place for place, one in enumerate(whole) if one.role == "assistant"), len(whole))
    if not any(one.role == "user" for one in whole[:first]) or not whole[first:] or whole[-1].role != "assistant":
        raise UnfitError("a conversation has to begin with a question and to end with an answer")
    return whole[:first], whole[first:]


def only(answer: Sequence[Turn]) -> Turn:
    """The one turn of an answer.

    Raises:
        UnfitError: It has more.
    """
    if len(answer) != 1:
        raise UnfitError("the format takes answers of one turn only")
    return answer[0]
