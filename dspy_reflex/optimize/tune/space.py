"""What is searched: the optimizer, its own options, the model, and the model that writes instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import TYPE_CHECKING, Any

from dspy_reflex.optimize.optimizers import optimizer
from dspy_reflex.optimize.optimizers.base import Sizes

if TYPE_CHECKING:
    from optuna import Trial

SAME = "same"
"""The prompt model that is the model itself."""


@dataclass(frozen=True)
class Point:
    """One place in the space: all that a trial chooses."""

    optimizer: str
    settings: Mapping[str, Any]
    """The optimizer's own options, those that are searched."""
    lm: str
    prompt_lm: str | None
    """None: `lm` itself, or the optimizer writes no instructions."""


@dataclass(frozen=True)
class Space:
    """All places: each optimizer has options of its own, so an option is part of it only beside its optimizer."""

    optimizers: tuple[str, ...]
    lms: tuple[str, ...]
    prompt_lms: tuple[str, ...] = ()
    """Models that may write instructions beside the program's own."""

    def __post_init__(self) -> None:
        """Check names.

        Raises:
            ConfigError: There is no optimizer of a name.
        """
        for name in self.optimizers:
            optimizer(name)

    def suggest(self, trial: Trial) -> Point:
        """Let a trial choose its place."""
        name = trial.suggest_categorical("optimizer", self.optimizers)
        chosen: dict[str, Any] = {
            key: trial.suggest_categorical(key, values) for key, values in self._choices(name).items()
        }
        settings = {option: chosen[f"{name}.{option}"] for option in searched(name)}
        writer = chosen.get("prompt_lm", SAME)
        return Point(name, settings, chosen["lm"], None if writer == SAME else writer)

    def draw(self, luck: Random) -> dict[str, Any]:
        """A place at random, under the names that `suggest` uses."""
        name = luck.choice(self.optimizers)
        return {"optimizer": name, **{key: luck.choice(values) for key, values in self._choices(name).items()}}

    def relevant(self, choices: Mapping[str, Any]) -> dict[str, Any]:
        """Those that belong to the optimizer among them, and those that leave no choice."""
        name = choices.get("optimizer", self.optimizers[0] if len(self.optimizers) == 1 else None)
        if name is None:
            return {}
        offered = {"optimizer": (name,), **self._choices(name)}
        made = {key: values[0] for key, values in offered.items() if len(values) == 1}
        return made | {key: choices[key] for key in offered if key in choices}

    def firsts(self) -> list[dict[str, Any]]:
        """Where to begin: each optimizer once as it is without flags, under the names that `suggest` uses."""
        return [self._plain(name) for name in self.optimizers]

    def to_json(self) -> dict[str, Any]:
        """Every choice there is."""
        options = {name: {option: list(found) for option, found in searched(name).items()} for name in self.optimizers}
        return {"optimizers": options, "lms": list(self.lms), "prompt_lms": list(self.prompt_lms)}

    def _choices(self, name: str) -> dict[str, Sequence[Any]]:
        options = {f"{name}.{option}": values for option, values in searched(name).items()}
        writers = {"prompt_lm": (SAME, *self.prompt_lms)} if writes_instructions(name) else {}
        return {"lm": self.lms, **options, **writers}

    def _plain(self, name: str) -> dict[str, Any]:
        defaults = optimizer(name).configured({})
        settings = {f"{name}.{option}": getattr(defaults, option) for option in searched(name)}
        return {key: settings.get(key, values[0]) for key, values in self._choices(name).items()} | {"optimizer": name}


def searched(name: str) -> dict[str, Sequence[Any]]:
    """The options of an optimizer that are searched, and the values that each may take."""
    options = fields(optimizer(name).options)
    return {each.name: each.metadata["search"] for each in options if each.metadata["search"]}


def writes_instructions(name: str) -> bool:
    """Whether an optimizer asks a prompt model at all."""
    chosen = optimizer(name)
    return chosen.calls(chosen.configured({}), Sizes(1, 1)).propose > 0


def words(choices: Mapping[str, Any]) -> str:
    """What a trial tries, by the names that `suggest` uses, in words: `miprov2 lm=offline max_demos=16 trials=12`."""
    name = str(choices.get("optimizer", ""))
    rest = {key.removeprefix(f"{name}."): value for key, value in choices.items() if key != "optimizer"}
    return " ".join([name, *(f"{key}={value}" for key, value in rest.items() if value != SAME)])
