"""Demos and advice from the rows on which a program's answers vary most.

DSPy's `SIMBA` on a sample of train no larger than it looks at: it ends with scoring every winner on all that it is given.
The winners are then raced on val. It asks each row several times, with other seeds and by programs that it has made;
a model that answers the same whatever the seed, as the offline learner does, varies by programs alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspy_reflex.errors import ConfigError
from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option

TEMPERATURE = 1.0
"""What SIMBA asks with."""


@dataclass(frozen=True)
class SimbaOptions(Options):
    """Size of the search."""

    max_demos: int = option(4, 0, 200, "demos in the prompt", search=(4, 8))
    batch_size: int = option(16, 2, 1000, "train rows in a mini-batch", search=(16, 32))
    samples: int = option(4, 2, 50, "answers to each row of a mini-batch", search=(4, 6))
    steps: int = option(4, 1, 100, "mini-batches", search=(4, 8))


def _run(student: Any, setting: Setting, options: SimbaOptions) -> Any:
    from dspy.teleprompt import SIMBA

    batch = min(options.batch_size, len(setting.trainset))
    simba = SIMBA(
        metric=_unweighted(setting.metric),
        bsize=batch,
        num_candidates=options.samples,
        max_steps=options.steps,
        max_demos=options.max_demos,
        prompt_model=setting.prompt_lm,
        # its own copy: SIMBA writes a rollout id into the model that it is given
        teacher_settings={"lm": setting.teacher_lm.copy(temperature=TEMPERATURE)} if setting.teacher_lm else None,
        num_threads=setting.threads,
    )
    best: Any = simba.compile(student, trainset=setting.trainset[: batch * options.steps], seed=setting.seed)
    setting.board.race_all([candidate["program"] for candidate in best.candidate_programs])
    return setting.board.leader(student)


def _unweighted(metric: Any) -> Any:
    """The metric with all classes counting the same: of two right answers to a row none may be better."""
    from dspy_reflex.optimize.metrics import CauseMetric

    return metric.unweighted() if isinstance(metric, CauseMetric) else metric


def _check(options: SimbaOptions, sizes: Sizes) -> None:
    if sizes.train < options.batch_size:
        raise ConfigError(
            f"--batch-size {options.batch_size}: there are {sizes.train} rows to learn from; give a number up to that"
        )


def _calls(options: SimbaOptions, sizes: Sizes) -> Calls:
    seen = options.batch_size * options.steps
    winners = min(options.samples, options.steps) + 1
    return Calls(
        bootstrap=seen * (2 * options.samples + 1) + winners * min(seen, sizes.train),
        propose=seen,
        evaluate=winners * sizes.val,
    )


OPTIMIZER = Optimizer(
    name="simba",
    learns="advice and demos, from rows on which answers differ",
    pick_when="the model's answers to one question differ",
    options=SimbaOptions,
    calls=_calls,
    run=_run,
    looks_further_with="steps",
    check=_check,
)
