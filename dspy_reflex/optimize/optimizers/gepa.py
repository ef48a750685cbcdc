"""Instructions that grow by reflection: a prompt model reads what went wrong, and why, and writes a better one.

DSPy's `GEPA` (L. A. Agrawal et al.: GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning,
arXiv:2507.19457) with our metrics in words. It keeps no files of its own: the journal is the way back into a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.errors import ConfigError
from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option

TEMPERATURE = 1.0
"""What DSPy recommends for reflection."""


@dataclass(frozen=True)
class GepaOptions(Options):
    """How long, and how much at a time."""

    max_metric_calls: int = option(
        600, 1, 100_000, "rows to score until no more instructions are tried", search=(600, 1200)
    )
    minibatch: int = option(8, 1, 1000, "train rows to reflect on at once", search=(4, 8, 16))


def _run(student: Any, setting: Setting, options: GepaOptions) -> Any:
    from dspy.teleprompt import GEPA

    from dspy_reflex.optimize.search.feedback import FeedbackMetric, feedback_for

    gepa = GEPA(
        metric=FeedbackMetric(setting.metric, feedback_for(student.program, student.taxonomy)),
        max_metric_calls=options.max_metric_calls,
        reflection_minibatch_size=min(options.minibatch, len(setting.trainset)),
        reflection_lm=setting.prompt_lm.copy(rollout_id=setting.seed, temperature=TEMPERATURE),
        use_merge=False,  # it crosses several predictors; a program here is one
        num_threads=setting.threads,
        seed=setting.seed,
    )
    return gepa.compile(student, trainset=setting.trainset, valset=setting.valset)


def _check(options: GepaOptions, sizes: Sizes) -> None:
    least = sizes.val + 2 * options.minibatch
    if options.max_metric_calls <= least:
        raise ConfigError(
            f"--max-metric-calls {options.max_metric_calls}: it takes more than {least} to try one instruction, "
            f"{sizes.val} on val and twice --minibatch {options.minibatch}"
        )


def _calls(options: GepaOptions, sizes: Sizes) -> Calls:
    reflections = -(-max(0, options.max_metric_calls - sizes.val) // options.minibatch)
    return Calls(propose=reflections, evaluate=options.max_metric_calls + 2 * options.minibatch + sizes.val)


OPTIMIZER = Optimizer(
    name="gepa",
    learns="the instruction, from what went wrong",
    pick_when="mistakes can be explained; it is told what was wrong and why",
    options=GepaOptions,
    calls=_calls,
    run=_run,
    looks_further_with="max_metric_calls",
    check=_check,
)
