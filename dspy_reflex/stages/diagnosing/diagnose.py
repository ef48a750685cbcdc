"""Failures in, diagnoses out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.failure import Failure
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.asking.batch import Batch, Meter, run_batch


def diagnose(
    program: CauseProgram,
    failures: Sequence[Failure],
    *,
    concurrency: int = 1,
    max_usd: float | None = None,
    tick: Callable[[int], None] = lambda _: None,
) -> Batch[Diagnosis]:
    """Name the root cause of each failure.

    An outage or a spent budget ends the batch early; the batch says so and keeps what is done.

    Raises:
        ConfigError: `max_usd` is given and the model's price is not known.
    """
    meter = Meter(program.model.name, max_usd)
    return run_batch(failures, program.explained, meter=meter, concurrency=concurrency, tick=tick)
