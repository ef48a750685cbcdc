"""New instructions and demo sets, searched together.

Instructions are proposed by DSPy's `MIPROv2`; what costs most of its time and calls is done differently, see
`optimize.search.mipro`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option

SUMMARY_CALLS = 11
"""What DSPy's data summary takes at most."""
CALLS_PER_INSTRUCTION = 3


@dataclass(frozen=True)
class MiproOptions(Options):
    """Size of the search."""

    max_demos: int = option(16, 0, 200, "demos in the prompt", search=(6, 12, 16, 24))
    max_bootstrapped: int = option(4, 0, 50, "demos among them that the teacher works out", search=(2, 4, 8))
    candidates: int = option(6, 2, 50, "instructions, and demo sets, to choose from", search=(4, 6, 10))
    trials: int = option(24, 1, 1000, "candidates to score", search=(12, 24, 48))


def _run(student: Any, setting: Setting, options: MiproOptions) -> Any:
    from dspy_reflex.optimize.search.mipro import compile_mipro

    return compile_mipro(student, setting, options)


def _calls(options: MiproOptions, sizes: Sizes) -> Calls:
    works_out = options.max_bootstrapped or not options.max_demos
    return Calls(
        bootstrap=(options.candidates - 2) * sizes.train if works_out else 0,
        propose=SUMMARY_CALLS + CALLS_PER_INSTRUCTION * options.candidates,
        evaluate=options.trials * sizes.val,
    )


OPTIMIZER = Optimizer(
    name="miprov2",
    learns="instructions and demo sets together",
    pick_when="you do not know; it is the default",
    options=MiproOptions,
    calls=_calls,
    run=_run,
    looks_further_with="trials",
)
