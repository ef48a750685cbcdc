"""What an optimizer is here: a name, options, what it will ask, and one function from a module to a compiled one.

Neither this module nor those of the optimizers import DSPy before one of them runs: `--help` costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from dspy_reflex.errors import ConfigError

if TYPE_CHECKING:
    from dspy_reflex.optimize.search.scoreboard import Scoreboard

ANY_NUMBER = 10**6
"""Unusable answers are misses, not a reason for DSPy to stop; outages never get that far."""


def _anything_goes(options: Any, sizes: Sizes) -> None:
    """What most optimizers need of options and rows."""


def option(default: int, low: int, high: int, text: str, search: Sequence[int] = ()) -> Any:
    """A whole-number option of an optimizer, as a dataclass field.

    Args:
        default: Its value where nobody says another one.
        low: The least it may be.
        high: The most it may be.
        text: What it is, for `--help`.
        search: Values that `tune` chooses from; none leaves it at its default.
    """
    return field(default=default, metadata={"low": low, "high": high, "text": text, "search": tuple(search)})


@dataclass(frozen=True)
class Options:
    """The options of an optimizer; each has a dataclass of its own."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: A value is out of range.
        """
        for each in fields(self):
            value, low, high = getattr(self, each.name), each.metadata["low"], each.metadata["high"]
            if not low <= value <= high:
                raise ConfigError(f"{flag(each.name)}: {value} is not between {low} and {high}")


@dataclass(frozen=True)
class Sizes:
    """What an estimate is made of."""

    train: int
    val: int


@dataclass(frozen=True)
class Calls:
    """The most calls that an optimizer makes in each phase."""

    bootstrap: int = 0
    propose: int = 0
    evaluate: int = 0


@dataclass(frozen=True)
class Setting:
    """What all optimizers are given."""

    metric: Callable[..., Any]
    trainset: list[Any]
    """Classes in turn, so that a class-blind optimizer that takes the first ones takes some of each."""
    valset: list[Any]
    task_lm: Any
    prompt_lm: Any
    teacher_lm: Any
    """None: the task model teaches itself."""
    seed: int
    threads: int
    view_batch: int
    """Examples the prompt model is shown at once."""
    board: Scoreboard
    """Keeps the score, and races candidates."""

    @property
    def teacher_settings(self) -> dict[str, Any]:
        """What DSPy runs the teacher under."""
        return {"lm": self.teacher_lm} if self.teacher_lm else {}


@dataclass(frozen=True)
class Optimizer:
    """One way to compile."""

    name: str
    learns: str
    """What it changes in a program, for the table in the docs."""
    pick_when: str
    """When it pays."""
    options: type[Options]
    calls: Callable[[Any, Sizes], Calls]
    run: Callable[[Any, Setting, Any], Any]
    """An uncompiled module in, a compiled one out; a searching optimizer leaves its candidates on the board."""
    looks_further_with: str | None = None
    """The option that lets it try more; None if it tries one thing."""
    check: Callable[[Any, Sizes], None] = _anything_goes
    """Raises a `ConfigError` for options that cannot work on so many rows, before anything is asked."""

    def configured(self, given: Mapping[str, Any]) -> Options:
        """Its options, with defaults for those not given.

        Raises:
            ConfigError: It has no such option, or a value is out of range.
        """
        known = [each.name for each in fields(self.options)]
        for name in given:
            if name not in known:
                takes = ", ".join(map(flag, known)) or "no options"
                raise ConfigError(f"{self.name} has no option {flag(name)}; it takes {takes}")
        return self.options(**given)


def flag(name: str) -> str:
    """An option's name as the command line spells it."""
    return "--" + name.replace("_", "-")
