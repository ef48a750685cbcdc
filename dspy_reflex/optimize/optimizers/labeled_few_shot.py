"""Labelled rows as demos: the floor for everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, option


@dataclass(frozen=True)
class LabeledFewShotOptions(Options):
    """How many."""

    max_demos: int = option(16, 1, 200, "demos in the prompt", search=(6, 12, 16, 24))


def _run(student: Any, setting: Setting, options: LabeledFewShotOptions) -> Any:
    from dspy.teleprompt import LabeledFewShot

    few_shot = LabeledFewShot(k=options.max_demos)
    return few_shot.compile(student, trainset=setting.trainset, sample=False)  # the first ones: classes in turn


OPTIMIZER = Optimizer(
    name="labeled_few_shot",
    learns="which rows to show",
    pick_when="you want a floor for the others, or no call to be made",
    options=LabeledFewShotOptions,
    calls=lambda options, sizes: Calls(),
    run=_run,
)
