"""For each input, the labelled rows most like it, looked up when the prompt is rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, option


@dataclass(frozen=True)
class KnnFewShotOptions(Options):
    """How many."""

    max_demos: int = option(4, 1, 200, "demos in the prompt", search=(2, 4, 8, 16))


def _run(student: Any, setting: Setting, options: KnnFewShotOptions) -> Any:
    from dspy_reflex.optimize.search.knn import compile_knn

    return compile_knn(student, setting.trainset, options.max_demos)


OPTIMIZER = Optimizer(
    name="knn_few_shot",
    learns="which rows to show with which input",
    pick_when="failures repeat with small changes, and no call is to be made",
    options=KnnFewShotOptions,
    calls=lambda options, sizes: Calls(),
    run=_run,
)
