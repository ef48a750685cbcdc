"""The chain as the loop runs it: a rule is asked for by the cause that a program names, not by the labelled one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dspy_reflex.benchmark.predict import Contender, Tick, cause_answers
from dspy_reflex.benchmark.trainset import compiled_on, count_seen
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure

UNDIAGNOSED = "unknown"
"""The cause of a row that got no usable answer."""


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Rows with the causes that a program named."""

    rows: tuple[LabelledFailure, ...]
    right: int
    """How many of the causes are the labelled ones."""

    def named(self, dataset: str, diagnoser: Contender) -> str:
        """What to call these rows, given what they were called with their labels."""
        return f"{dataset}, causes by {diagnoser.name} ({self.right} of {len(self.rows)} right)"


def diagnosed(
    rows: Sequence[LabelledFailure],
    diagnoser: Contender,
    *,
    allow_seen: bool = False,
    concurrency: int = 1,
    tick: Tick = lambda: None,
) -> Diagnosed:
    """Give each row the cause that a root-cause program names; everything else stays, what rules are scored by, too.

    Raises:
        BenchmarkError: It is no root-cause program, or it was compiled on one of the rows.
        ModelUnavailableError: The model could not be reached.
    """
    if diagnoser.artifact.program != "root_cause":
        raise BenchmarkError(f"{diagnoser.name} names no causes; give a root_cause program")
    count_seen(diagnoser.name, compiled_on(diagnoser.artifact), rows, allow_seen=allow_seen)
    answers = cause_answers(diagnoser, rows, concurrency, tick)
    told = [(row, answer.label or UNDIAGNOSED) for row, answer in zip(rows, answers, strict=True)]
    # a row without a labelled cause stays one: who scores rules has to refuse it
    changed = tuple(row.model_copy(update={"root_cause": row.root_cause and label}) for row, label in told)
    return Diagnosed(changed, sum(row.root_cause == label for row, label in told))
