"""The optimizers by name, each with what it needs from a compile.

One entry each; there is no silent fall-back from one to another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dspy.teleprompt import BootstrapFewShot, BootstrapFewShotWithRandomSearch, LabeledFewShot, MIPROv2

from dspy_reflex.errors import CompileError, ConfigError

MAX_BOOTSTRAPPED = 4
"""Demos of a set that the teacher works out itself; the rest are labelled rows as they are."""
ANY_NUMBER = 10**6
"""Unusable answers are misses, not a reason for DSPy to stop; outages never get that far."""


@dataclass(frozen=True)
class Setting:
    """What all optimizers choose from."""

    metric: Callable[..., Any]
    trainset: list[Any]
    valset: list[Any]
    task_lm: Any
    prompt_lm: Any
    teacher_lm: Any
    """None: the task model teaches itself."""
    seed: int
    max_demos: int
    trials: int
    threads: int
    view_batch: int
    """Examples the prompt model is shown at once."""

    @property
    def teacher_settings(self) -> dict[str, Any]:
        """What DSPy runs the teacher under."""
        return {"lm": self.teacher_lm} if self.teacher_lm else {}

    @property
    def bootstrapped(self) -> int:
        """Demos to bootstrap, never more than demos allowed."""
        return min(MAX_BOOTSTRAPPED, self.max_demos)


Optimizer = Callable[[Any, Setting], Any]
"""One way to compile: an uncompiled module in, a compiled one out."""


def _labeled_few_shot(student: Any, setting: Setting) -> Any:
    return LabeledFewShot(k=setting.max_demos).compile(student, trainset=setting.trainset)


def _bootstrap_few_shot(student: Any, setting: Setting) -> Any:
    optimizer = BootstrapFewShot(
        metric=setting.metric,
        teacher_settings=setting.teacher_settings,
        max_bootstrapped_demos=setting.bootstrapped,
        max_labeled_demos=setting.max_demos,
        max_errors=ANY_NUMBER,
    )
    return optimizer.compile(student, trainset=setting.trainset)


def _bootstrap_random_search(student: Any, setting: Setting) -> Any:
    if setting.max_demos == 0:
        raise CompileError("bootstrap_random_search searches demos, and 0 changed nothing; allow some with --max-demos")
    optimizer = BootstrapFewShotWithRandomSearch(
        metric=setting.metric,
        teacher_settings=setting.teacher_settings,
        max_bootstrapped_demos=setting.bootstrapped,
        max_labeled_demos=setting.max_demos,
        num_candidate_programs=setting.trials,
        num_threads=setting.threads,
        max_errors=ANY_NUMBER,
    )
    return optimizer.compile(student, trainset=setting.trainset, valset=setting.valset)


def _miprov2(student: Any, setting: Setting) -> Any:
    optimizer = MIPROv2(
        metric=setting.metric,
        prompt_model=setting.prompt_lm,
        task_model=setting.task_lm,
        teacher_settings=setting.teacher_settings,
        max_bootstrapped_demos=setting.bootstrapped,
        max_labeled_demos=setting.max_demos,
        auto=None,
        num_candidates=max(2, min(6, setting.trials)),
        num_threads=setting.threads,
        max_errors=ANY_NUMBER,
        seed=setting.seed,
    )
    return optimizer.compile(
        student,
        trainset=setting.trainset,
        valset=setting.valset,
        num_trials=setting.trials,
        seed=setting.seed,
        minibatch=False,
        view_data_batch_size=setting.view_batch,
    )


OPTIMIZERS: dict[str, Optimizer] = {
    "labeled_few_shot": _labeled_few_shot,
    "bootstrap_few_shot": _bootstrap_few_shot,
    "bootstrap_random_search": _bootstrap_random_search,
    "miprov2": _miprov2,
}
"""Every optimizer, by the name the command line uses; docs/compile.md says when to pick which."""


def optimizer(name: str) -> Optimizer:
    """The optimizer of a name.

    Raises:
        ConfigError: There is none.
    """
    if name not in OPTIMIZERS:
        raise ConfigError(f"there is no optimizer {name!r}; choose one of {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]
