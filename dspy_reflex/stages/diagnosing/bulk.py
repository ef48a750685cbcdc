"""Failures in, diagnoses out, through the provider's batches: half the price, for those who can wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from dspy_reflex.errors import BudgetError, ConfigError, ModelError
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.failure import Failure
from dspy_reflex.runtime.lm.batches.api import Unanswered
from dspy_reflex.runtime.lm.batches.estimate import estimate
from dspy_reflex.runtime.lm.batches.run import BatchRun, Chats, digest_of
from dspy_reflex.runtime.lm.batches.state import State
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Completion
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.asking.batch import Batch, Meter

FOLDER = Path("batches")
"""Where runs without a folder of their own go, each named by what it asks, so that the same question finds it again."""
STATE = "batch.json"
Found = Sequence[Completion | Unanswered | None]


def diagnose_in_batches(
    program: CauseProgram,
    failures: Sequence[Failure],
    *,
    folder: Path | None = None,
    max_usd: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Batch[Diagnosis]:
    """Name the root cause of each failure; called again with the same failures, it goes on where it was.

    What has no answer is left: failed and expired requests after a second attempt, and everything after an outage.

    Args:
        program: On a model of Anthropic's.
        failures: In the order in which diagnoses are wanted.
        folder: Where the ids of the batches and their results are kept.
        max_usd: Nothing is sent if all could cost more than this.
        tell: Told how far the batches are.

    Raises:
        ConfigError: The model has no batches, or `max_usd` is given and its price is not known.
        BudgetError: It could cost more than `max_usd`; nothing was sent.
        RunError: The folder is of other failures, or damaged, or another process is at it.
    """
    model = program.model
    if not isinstance(model, Claude):
        raise ConfigError(f"--batch: {model.name} has no batches; leave it out, or use a model of anthropic/…")
    meter = Meter(model.name, max_usd, half_price=True)
    chats = [program.chat(failure) for failure in failures]
    digest = digest_of(model, chats)
    folder = folder or FOLDER / digest[:12]
    tell(f"batches are kept in {folder}")
    with State(folder / STATE, digest) as state:
        run, stopped = BatchRun(model, chats, state, tell), ""
        try:
            _check(model, [chats[place] for place in run.to_pay()], max_usd, tell)
            run.finish()
        except ModelError as error:
            stopped = f"{error} The same command goes on from there."
        except KeyboardInterrupt:
            stopped = "interrupted; what was sent goes on, and the same command fetches it."
        return _gathered(program, failures, run.answers(), meter, stopped)


def _check(model: Claude, chats: Chats, max_usd: float | None, tell: Callable[[str], None]) -> None:
    if max_usd is None or not chats:
        return
    most = estimate(model, chats)
    told = f"{len(chats)} questions, about {most.input_tokens:,} tokens, with answers of up to {most.output_tokens:,}"
    if most.usd is not None and most.usd > max_usd:
        raise BudgetError(f"--max-usd: {told} could cost {most.usd:.4f} USD; nothing was sent, raise it or give fewer")
    tell(f"at most {most.usd:.4f} USD: {told}")


def _gathered(
    program: CauseProgram, failures: Sequence[Failure], found: Found, meter: Meter, stopped: str
) -> Batch[Diagnosis]:
    done: dict[int, Diagnosis] = {}
    for place, (failure, completion) in enumerate(zip(failures, found, strict=True)):
        if isinstance(completion, Completion):
            done[place], answer = program.read(failure, completion)
            meter.count(answer)
    return Batch(
        tuple(done.values()),
        tuple(done),
        len(failures) - len(done),
        stopped or _why([one for one in found if isinstance(one, Unanswered)]),
        meter.calls,
        meter.input_tokens,
        meter.output_tokens,
        meter.usd,
    )


def _why(unanswered: Sequence[Unanswered]) -> str:
    """Why requests have no answer, in a sentence; empty if all have."""
    if not unanswered:
        return ""
    details = {one.reason: one.detail for one in reversed(unanswered)}
    counts = Counter(one.reason for one in unanswered)
    told = [f"{count} {why}" + (f" ({details[why]})" if details[why] else "") for why, count in counts.items()]
    again = "" if set(counts) == {"invalid"} else "; the same command asks again, but for the invalid ones"
    return ", ".join(told) + again
