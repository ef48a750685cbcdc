"""What a format is: how a row is written for a trainer, how it is read back, and what a written row must look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dspy_reflex.finetune.row import Kind, Role, Turn

STRICT = ConfigDict(extra="forbid", strict=True)
ASKED = "a question has to be a system prompt, if any, then user and assistant in turns, and to end with the user"
ANSWERED = "an answer has to begin and to end with the assistant, and the user to take turns with it"


class UnfitError(Exception):
    """A row cannot be said in a format; the message says why, in a few words that are the same for all such rows."""


class Said(NamedTuple):
    """What of a row a format keeps: everything but where it came from."""

    prompt: tuple[Turn, ...]
    answer: tuple[Turn, ...]
    rejected: tuple[Turn, ...] = ()
    label: bool | None = None


@dataclass(frozen=True)
class Shape:
    """One kind of row in one format."""

    write: Callable[[Said], dict[str, Any]]
    """What a trainer reads, of a row that passes `check`; raises `UnfitError` where the format has no words for it."""
    read: Callable[[Mapping[str, Any]], Said]
    """The way back."""
    row: Any
    """A TypedDict: the fields, and no others."""

    @cached_property
    def _checker(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.row)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of a written row."""
        return self._checker.json_schema()

    def problem(self, row: object) -> str:
        """What is wrong with a written row; empty if nothing is."""
        try:
            check(self.read(self._checker.validate_python(row)))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
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
    beside: Callable[[Sequence[str]], Mapping[str, str]] = field(default=lambda _: {})
    """Files that the trainer wants beside the rows, by name: for these files of rows, as `sft/train`."""
    suffix: Literal["jsonl", "parquet"] = "jsonl"
    limits: Limits = field(default_factory=Limits)

    def problem(self, row: object) -> str:
        """What is wrong with a written row of any kind, as the kind sees it that has most of its fields; or nothing."""
        keys = set(cast("dict[str, Any]", row)) if isinstance(row, dict) else set[str]()
        nearest = max(self.shapes.values(), key=lambda shape: len(keys & set(shape.row.__annotations__)))
        problems = [shape.problem(cast("object", row)) for shape in (nearest, *self.shapes.values())]
        return "" if "" in problems else problems[0]


class Message(TypedDict):
    """A turn as most trainers have it."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    role: Literal["system", "user", "assistant"]
    content: str


class Answer(TypedDict):
    """A turn of the assistant."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    role: Literal["assistant"]
    content: str


def check(said: Said) -> None:
    """Look whether question and answers are such, whatever the format.

    Raises:
        UnfitError: They are not.
    """
    if not _take_turns(without_system(said.prompt)[1], "user", "assistant"):
        raise UnfitError(ASKED)
    if not _take_turns(said.answer, "assistant", "user"):
        raise UnfitError(ANSWERED)
    if said.rejected and not _take_turns(said.rejected, "assistant", "user"):
        raise UnfitError(ANSWERED)
    for one in (*said.prompt, *said.answer, *said.rejected):
        if not one.content or one.content.isspace():
            raise UnfitError("a turn says nothing")


def messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Turns as most trainers take them."""
    return [{"role": one.role, "content": one.content} for one in turns]


def turns(said: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The way back."""
    return tuple(Turn(one["role"], one["content"]) for one in said)


def divided(whole: Sequence[Turn]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """A conversation as question and answer: what is imitated begins with the first word of the assistant."""
    first = next((place for place, one in enumerate(whole) if one.role == "assistant"), len(whole))
    return tuple(whole[:first]), tuple(whole[first:])


def without_system(turns: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
    """The system prompt, if there is one, and what follows it."""
    return (turns[0].content, turns[1:]) if turns and turns[0].role == "system" else (None, turns)


def only(answer: Sequence[Turn]) -> Turn:
    """The one turn of an answer.

    Raises:
        UnfitError: It has more.
    """
    if len(answer) != 1:
        raise UnfitError("the format takes answers of one turn only")
    return answer[0]


def _take_turns(turns: Sequence[Turn], first: Role, second: Role) -> bool:
    """Whether the first begins and ends."""
    now, then = first, second
    for one in turns:
        if one.role != now:
            return False
        now, then = then, now
    return len(turns) % 2 == 1
