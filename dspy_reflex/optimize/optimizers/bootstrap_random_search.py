"""Many demo sets, raced against each other on val.

The sets are those of DSPy's `BootstrapFewShotWithRandomSearch`, with classes balanced. Its search is replaced: it scores
each set on all of val, one after another, and cannot drop one early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option


@dataclass(frozen=True)
class RandomSearchOptions(Options):
    """How many demos and how many sets of them."""

    max_demos: int = option(16, 1, 200, "demos in the prompt", search=(6, 12, 16, 24))
    max_bootstrapped: int = option(4, 1, 50, "demos among them that the teacher works out", search=(2, 4, 8))
    trials: int = option(12, 1, 1000, "candidates to score", search=(6, 12))


def _run(student: Any, setting: Setting, options: RandomSearchOptions) -> Any:
    from dspy_reflex.optimize.search.demos import demo_sets, with_demos

    worked_out = min(options.max_bootstrapped, options.max_demos)
    sets = demo_sets(student, setting, options.trials, worked_out, options.max_demos)
    setting.board.race_all([with_demos(student, demos) for demos in sets])
    return setting.board.leader(student)


def _calls(options: RandomSearchOptions, sizes: Sizes) -> Calls:
    return Calls(bootstrap=(options.trials - 1) * sizes.train, evaluate=options.trials * sizes.val)


OPTIMIZER = Optimizer(
    name="bootstrap_random_search",
    learns="the best of many demo sets",
    pick_when="demos matter more than wording",
    options=RandomSearchOptions,
    calls=_calls,
    run=_run,
    looks_further_with="trials",
)
