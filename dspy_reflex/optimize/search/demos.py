"""Demos of every class, worked out several at a time.

DSPy's few-shot optimizers are class-blind (of a train set sorted by class they take one class) and work out one demo
after another. These ask exactly the questions they would ask, no more, but in waves; and what labelled rows fill up the
prompt is chosen so that every class has as many demos as any other.
"""

from __future__ import annotations

import contextvars
import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import dspy
from dspy.teleprompt import BootstrapFewShot, LabeledFewShot
from dspy.utils.exceptions import AdapterParseError

from dspy_reflex.optimize.optimizers.base import ANY_NUMBER, Setting

In = TypeVar("In")
Out = TypeVar("Out")
Examples = Sequence[Any]
Demos = list[Any]


class BalancedBootstrap(BootstrapFewShot):
    """DSPy's `BootstrapFewShot` for programs of one predictor, in waves and with balanced classes."""

    def __init__(self, threads: int, **options: Any) -> None:
        """Ask up to `threads` questions at a time."""
        super().__init__(max_errors=ANY_NUMBER, **options)
        self.threads = threads

    def _bootstrap(self, *, max_bootstraps: int | None = None) -> None:
        """Work out demos until there are enough.

        A wave is as many examples as there are demos missing. One after another at least as many would be asked, so a
        wave asks nothing in vain.
        """
        wanted, place = self.max_bootstrapped_demos, 0
        worked_out: dict[int, Any] = {}
        while len(worked_out) < wanted and place < len(self.trainset):
            wave = range(place, min(place + wanted - len(worked_out), len(self.trainset)))
            demos = in_parallel(self._worked_out, [self.trainset[i] for i in wave], self.threads)
            worked_out |= {i: demo for i, demo in zip(wave, demos, strict=True) if demo is not None}
            place = wave.stop
        self.name2traces = {name: list(worked_out.values()) for name in self.name2predictor}
        self.validation = [example for i, example in enumerate(self.trainset) if i not in worked_out]

    def _worked_out(self, example: Any) -> Any:
        """The teacher's answer as a demo, if the metric takes it."""
        teacher = self.teacher.deepcopy()
        for predictor in teacher.predictors():
            predictor.demos = [demo for demo in predictor.demos if demo != example]
        try:
            with dspy.context(trace=[], **self.teacher_settings):
                prediction = teacher(**example.inputs())
                trace = dspy.settings.trace
        except AdapterParseError:
            return None
        assert self.metric is not None  # noqa: S101 - `bootstrapped` gives one
        if not self.metric(example, prediction, trace):
            return None
        _, inputs, outputs = trace[-1]
        return dspy.Example(augmented=True, **inputs, **outputs)

    def _train(self) -> Any:
        for name, predictor in self.student.named_predictors():
            demos = self.name2traces[name]
            room = max(0, self.max_labeled_demos - len(demos))
            predictor.demos = demos + balancing(demos, self.validation, room)
        return self.student


def bootstrapped(student: Any, setting: Setting, trainset: Examples, worked_out: int, demos: int) -> Any:
    """A copy of a module with so many demos, so many of them worked out by the teacher."""
    if not worked_out:
        return LabeledFewShot(k=demos).compile(student, trainset=list(trainset), sample=False)
    optimizer = BalancedBootstrap(
        setting.threads,
        metric=setting.metric,
        teacher_settings=setting.teacher_settings,
        max_bootstrapped_demos=worked_out,
        max_labeled_demos=demos,
    )
    teacher = LabeledFewShot(k=demos).compile(student, trainset=list(trainset), sample=False)
    return optimizer.compile(student, teacher=teacher, trainset=list(trainset))


def demo_sets(student: Any, setting: Setting, number: int, worked_out: int, demos: int) -> list[Demos]:
    """Demo sets to choose from, in the order of DSPy's searches: labelled rows, then worked ones of several sizes.

    Args:
        student: The module they are for.
        setting: The compile.
        number: How many sets.
        worked_out: The most demos of a set that the teacher works out.
        demos: The most demos of a set.
    """
    rng = random.Random(setting.seed)
    plans: list[tuple[Examples, int]] = [(setting.trainset, 0), (setting.trainset, worked_out)]
    while len(plans) < number:
        shuffled = rng.sample(setting.trainset, len(setting.trainset))
        plans.append((in_turn(shuffled), rng.randint(1, worked_out) if worked_out else 0))

    def made(plan: tuple[Examples, int]) -> Demos:
        return bootstrapped(student, setting, *plan, demos).predictors()[0].demos

    return in_parallel(made, plans[:number], setting.threads)


def with_demos(student: Any, demos: Demos, instructions: str | None = None) -> Any:
    """A copy of a module with these demos, and with these instructions if there are any."""
    copy = student.deepcopy()
    for predictor in copy.predictors():
        predictor.demos = demos
        if instructions is not None:
            predictor.signature = predictor.signature.with_instructions(instructions)
    return copy


def balancing(demos: Demos, pool: Examples, room: int) -> Demos:
    """So many examples of a pool, each of the class that has fewest demos by then; the first ones of equals."""
    have = Counter(demo.get("root_cause") for demo in demos)
    left = list(pool)
    chosen: Demos = []
    while left and len(chosen) < room:
        example = min(left, key=lambda one: have[one.get("root_cause")])
        left.remove(example)
        chosen.append(example)
        have[example.get("root_cause")] += 1
    return chosen


def in_turn(examples: Examples) -> list[Any]:
    """The same examples, classes in turn; within a class, and among classes that begin, in their order."""
    classes: dict[Any, list[Any]] = {}
    for example in examples:
        classes.setdefault(example.get("root_cause"), []).append(example)
    longest = max(map(len, classes.values()), default=0)
    return [rows[i] for i in range(longest) for rows in classes.values() if i < len(rows)]


def in_parallel(do: Callable[[In], Out], items: Sequence[In], threads: int) -> list[Out]:
    """What `do` makes of each item, in order, under DSPy's present settings."""
    pool = ThreadPoolExecutor(threads)
    try:
        waiting = [pool.submit(contextvars.copy_context().run, do, item) for item in items]
        return [each.result() for each in waiting]
    finally:  # after an error or Ctrl-C what has not begun never will; what has meets the ledger's end
        pool.shutdown(wait=False, cancel_futures=True)
