"""Demos whose answers the teacher worked out itself, beside labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option


@dataclass(frozen=True)
class BootstrapOptions(Options):
    """How many demos, and how many of them worked out."""

    max_demos: int = option(16, 1, 200, "demos in the prompt", search=(6, 12, 16, 24))
    max_bootstrapped: int = option(4, 1, 50, "demos among them that the teacher works out", search=(2, 4, 8))


def _run(student: Any, setting: Setting, options: BootstrapOptions) -> Any:
    from dspy_reflex.optimize.search.demos import bootstrapped

    worked_out = min(options.max_bootstrapped, options.max_demos)
    return bootstrapped(student, setting, setting.trainset, worked_out, options.max_demos)


def _calls(options: BootstrapOptions, sizes: Sizes) -> Calls:
    return Calls(bootstrap=sizes.train)


OPTIMIZER = Optimizer(
    name="bootstrap_few_shot",
    learns="worked demos",
    pick_when="a stronger --teacher-lm can work them out",
    options=BootstrapOptions,
    calls=_calls,
    run=_run,
)
