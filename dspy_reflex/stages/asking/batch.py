"""Many questions to one program: in order, several at a time, within a budget, and never losing what is done."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from dspy_reflex.errors import BudgetError, ConfigError, ModelError, ModelUnavailableError
from dspy_reflex.runtime.answer import Answer
from dspy_reflex.runtime.lm.prices import cost_usd

In = TypeVar("In")
Out = TypeVar("Out")

Reason = Literal["", "outage", "budget", "interrupt", "refused"]
"""Why a batch ended early: the model out of reach, the money spent, somebody at the keyboard, or the model's provider."""


@dataclass(frozen=True)
class Batch(Generic[Out]):
    """What came back before the end or the stop."""

    done: tuple[Out, ...]
    """Results, in the order of the questions."""
    answered: tuple[int, ...]
    """The place of each result's question."""
    left: int
    """Questions that were not answered."""
    stopped: str
    """Why some are left, in a sentence; empty if none are."""
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None if the model's price is not known."""
    reason: Reason = ""
    """The kind of `stopped`."""


class Meter:
    """What a batch has used so far, and whether there is room for one more question."""

    def __init__(self, model: str, max_usd: float | None, *, half_price: bool = False) -> None:
        """Count for a model; `max_usd` None is no limit, `half_price` what the provider's batches cost.

        Raises:
            ConfigError: The limit is no amount, or there is no price to hold against it.
        """
        if max_usd is not None and not math.isfinite(max_usd):
            raise ConfigError(f"--max-usd: {max_usd} is no amount of money")
        if max_usd is not None and cost_usd(model, 0, 0) is None:
            raise ConfigError(
                f"--max-usd: the price of {model} is not known; give one in a file named by REFLEX_PRICES"
            )
        self._model, self._max_usd, self._half_price = model, max_usd, half_price
        self._lock = threading.Lock()
        self.calls = self.input_tokens = self.output_tokens = 0
        self.cache_read_tokens = self.cache_write_tokens = 0

    @property
    def usd(self) -> float | None:
        """Money spent so far."""
        return cost_usd(
            self._model,
            self.input_tokens,
            self.output_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
            batch=self._half_price,
        )

    def count(self, answer: Answer) -> None:
        """Add what one answer used."""
        with self._lock:
            self.calls += 1
            self.input_tokens += answer.input_tokens
            self.output_tokens += answer.output_tokens
            self.cache_read_tokens += answer.cache_read_tokens
            self.cache_write_tokens += answer.cache_write_tokens

    def check(self) -> None:
        """Stop before the next question if the money is spent.

        Raises:
            BudgetError: It is.
        """
        with self._lock:
            spent = self.usd
        if self._max_usd is not None and spent is not None and spent >= self._max_usd:
            raise BudgetError(f"the budget of {self._max_usd} USD is spent ({spent:.4f} USD); raise --max-usd to go on")


def run_batch(
    questions: Sequence[In],
    ask: Callable[[In], tuple[Out, Answer]],
    *,
    meter: Meter,
    concurrency: int = 1,
    tick: Callable[[int], None] = lambda _: None,
) -> Batch[Out]:
    """Ask all questions; an outage or a spent budget ends it early and keeps what is done.

    Args:
        questions: In the order in which results are wanted.
        ask: One question; safe to call from several threads.
        meter: Counts and limits.
        concurrency: Questions at a time.
        tick: Told how many are done.
    """

    def one(question: In) -> Out:
        meter.check()
        result, answer = ask(question)
        meter.count(answer)
        return result

    done: dict[int, Out] = {}
    stopped, reason = "", _reason_of(None)
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        ahead: dict[int, Future[Out]] = {}
        try:
            for place, question in enumerate(questions):
                ahead[place] = pool.submit(one, question)
                if len(ahead) > concurrency:
                    _take_first(ahead, done)
                    tick(len(done))
            while ahead:
                _take_first(ahead, done)
                tick(len(done))
        except (ModelError, BudgetError, KeyboardInterrupt) as error:
            stopped, reason = str(error) or "interrupted", _reason_of(error)
            done.update(_paid_for(ahead))
    return Batch(
        tuple(done[place] for place in sorted(done)),
        tuple(sorted(done)),
        len(questions) - len(done),
        stopped,
        meter.calls,
        meter.input_tokens,
        meter.output_tokens,
        meter.usd,
        reason,
    )


def _reason_of(error: BaseException | None) -> Reason:
    match error:
        case None:
            return ""
        case ModelUnavailableError():
            return "outage"
        case BudgetError():
            return "budget"
        case KeyboardInterrupt():
            return "interrupt"
        case _:
            return "refused"


def _take_first(ahead: dict[int, Future[Out]], done: dict[int, Out]) -> None:
    """Wait for the first question on its way; never more than a few are ahead of the results."""
    place = next(iter(ahead))
    done[place] = ahead[place].result()
    del ahead[place]  # only now: an interrupted wait must not lose it


def _paid_for(ahead: dict[int, Future[Out]]) -> dict[int, Out]:
    """Answers of the questions that were on their way when another one failed; the rest is not asked any more."""
    started = {place: future for place, future in ahead.items() if not future.cancel()}
    return {place: future.result() for place, future in started.items() if future.exception() is None}
