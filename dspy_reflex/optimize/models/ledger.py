"""What a compile spent, by phase and by model, and whether it may spend more.

A question that is asked twice is paid for once and counted once. An answer that an earlier sitting of the same run has
paid for is part of the run's bill too, and counted as `replayed` beside it: a run that was interrupted ends with the
same bill as one that was not.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import reduce
from typing import Any, Literal

from dspy_reflex.errors import BudgetError, ReflexError
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.line import Line
from dspy_reflex.runtime.lm.model import Completion
from dspy_reflex.runtime.lm.prices import cost_usd

Phase = Literal["bootstrap", "propose", "evaluate", "measure"]
"""Working out demos, writing instructions, scoring candidates, and measuring what came out of it."""
_TOKENS = ("input_tokens", "output_tokens")
FIRST_GUESS_TOKENS = 300
"""How long an answer is taken to be before the first one is known."""


class Stop(BaseException):
    """No model may be asked any more. Not an `Exception`: DSPy's optimizers would score it as 0 and go on."""

    def __init__(self, error: ReflexError) -> None:
        """Carry what is to be told."""
        super().__init__(str(error))
        self.error = error


class Ledger:
    """Counts every answer of a run. Safe with threads; copies of a model share their ledger."""

    def __init__(self, budget: Budget | None = None, at_once: int | None = None) -> None:
        """Start at nothing; `at_once` is how many questions may be on their way together, whatever the model."""
        self._budget = budget or Budget()
        self.line = Line(at_once)
        self._lock = threading.Condition()
        self._phases: dict[str, Counter[str]] = {}
        self._models: dict[str, Counter[str]] = {}
        self._usd_by_model: dict[str, float | None] = {}
        self._ahead: list[_Ahead] = []
        self._known: set[str] = set()
        self._bought: set[str] = set()
        self._last = threading.local()
        self._phase = "start"
        self._given_up = 0
        self._stopped: ReflexError | None = None
        self._started = time.monotonic()
        self.evaluating = 0
        """Evaluations that are going on: what the task model is asked then is no bootstrapping."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        """DSPy copies its models freely; what they spend is one bill."""
        return self

    def has_room(self, model: str, calls: int, input_tokens: int) -> bool:
        """Whether so many calls, with so many input tokens in all, would stay within the budget at the price of batches."""
        budget = self._budget
        with self._lock:
            output_tokens = calls * self._usual_answer(model)
            usd = cost_usd(model, input_tokens, output_tokens, batch=True) or 0.0
            room = (
                (budget.max_calls, self._total("calls") + calls),
                (budget.max_tokens, self._total(*_TOKENS) + input_tokens + output_tokens),
                (budget.max_usd, (self._usd() or 0.0) + usd),
            )
        return all(limit is None or spent <= limit for limit, spent in room)

    @contextmanager
    def asking(self, model: str, input_tokens: int) -> Generator[None]:
        """Hold room for a question of about so many tokens while it is asked; its answer is added inside.

        What others are expected to use is a guess. So who finds no room beside them waits until it is known.

        Raises:
            BudgetError: There is no room, or somebody else has found that there is none.
            ModelError: The model is out of order, as somebody else has found.
        """
        with self._lock:
            while not self._stopped and (spent := self._spent()):
                if not self._ahead:
                    self._stopped = BudgetError(f"{spent}; raise it to go on")
                else:
                    self._lock.wait()
            if self._stopped:
                raise self._stopped
            ticket = _Ahead(model, input_tokens, self._usual_answer(model))
            self._ahead.append(ticket)
        try:
            yield
        finally:
            with self._lock:
                self._ahead.remove(ticket)
                self._lock.notify_all()

    def add(self, phase: Phase, model: str, answer: Completion, *, replayed: bool = False) -> None:
        """Count one answer with what the provider said it used."""
        tokens = Counter(calls=1, input_tokens=answer.input_tokens, output_tokens=answer.output_tokens)
        refused = answer.finish == "refusal"
        empty = not refused and not answer.text.strip()  # DSPy does not even try to read it
        more = {"refusals": int(refused), "replayed": int(replayed), "unusable": int(empty)}
        self._last.phase = None if refused or empty else phase
        with self._lock:
            self._phase = phase
            self._models.setdefault(model, Counter()).update(tokens)
            self._usd_by_model[model] = _sum(self._usd_by_model.get(model, 0.0), price_of(model, answer))
            self._phases.setdefault(phase, Counter()).update({**tokens, **more})

    def first(self, key: str) -> bool:
        """Whether an answer is not on the bill yet; from now on it is."""
        self._last.phase = None
        with self._lock:
            new = key not in self._known
            self._known.add(key)
        return new

    def bought(self, key: str) -> None:
        """Note an answer that this sitting has paid for, and nobody has asked for yet."""
        with self._lock:
            self._bought.add(key)

    def has_bought(self, key: str) -> bool:
        """Whether this sitting paid for an answer before it was asked for."""
        with self._lock:
            return key in self._bought

    def unusable(self) -> None:
        """The answer that this thread was given last was not in the form asked for; counted once, and no refusal is."""
        phase, self._last.phase = getattr(self._last, "phase", None), None
        if phase:
            with self._lock:
                self._phases[phase].update(unusable=1)

    def give_up(self, error: ReflexError) -> None:
        """Count a call that got no answer in all its attempts.

        Raises:
            ReflexError: `error`, when there were too many: no model of this bill is asked from now on.
        """
        with self._lock:
            self._given_up += 1
            if self._given_up > self._budget.max_errors:
                self._stopped = self._stopped or error
                raise self._stopped

    def stop(self, error: ReflexError) -> None:
        """No model of this bill may be asked from now on."""
        with self._lock:
            self._stopped = self._stopped or error
            self._lock.notify_all()

    def close(self) -> None:
        """Let nobody ask any more, and wait for what is on its way: it is paid for, and its answers are to be kept."""
        self.stop(BudgetError("this sitting is over"))
        with self._lock:
            self._lock.wait_for(lambda: not self._ahead)

    @property
    def has_limits(self) -> bool:
        """Whether the run may end before its work is done."""
        return bool(self._budget.limits)

    @property
    def calls(self) -> int:
        """Answers, each counted once."""
        with self._lock:
            return self._total("calls")

    @property
    def tokens(self) -> int:
        """Input and output tokens of all answers."""
        with self._lock:
            return self._total(*_TOKENS)

    @property
    def replayed(self) -> int:
        """Answers that an earlier sitting has paid for."""
        with self._lock:
            return sum(counts["replayed"] for counts in self._phases.values())

    @property
    def usd(self) -> float | None:
        """Money, if all prices are known."""
        with self._lock:
            return self._usd()

    @property
    def phase(self) -> str:
        """What the last answer was for; `start` before the first one."""
        return self._phase

    def left(self) -> str:
        """What the budget still allows, in words; empty without one."""
        with self._lock:
            spent = {"calls": self._total("calls"), "tokens": self._total(*_TOKENS), "USD": self._usd() or 0.0}
        limits = {"calls": self._budget.max_calls, "tokens": self._budget.max_tokens, "USD": self._budget.max_usd}
        room = {unit: limit - spent[unit] for unit, limit in limits.items() if limit is not None}
        return ", ".join(f"{max(0, amount):,.6g} {unit} left" for unit, amount in room.items())

    def to_json(self) -> dict[str, Any]:
        """Counts by phase, tokens and money by model."""
        with self._lock:
            return {
                "phases": {phase: dict(sorted(counts.items())) for phase, counts in sorted(self._phases.items())},
                "models": {
                    model: {**counts, "usd": self._usd_by_model[model]}
                    for model, counts in sorted(self._models.items())
                },
                "given_up": self._given_up,
            }

    def _spent(self) -> str:
        """Which limit leaves no room for one more question, those on their way counted; empty if none."""
        budget, ahead = self._budget, self._ahead
        tokens = sum(each.input_tokens + each.output_tokens for each in ahead)
        usd = sum(cost_usd(*astuple(each)) or 0.0 for each in ahead)
        if budget.max_calls is not None and self._total("calls") + len(ahead) >= budget.max_calls:
            return f"the budget of {budget.max_calls} calls (--max-calls) is spent"
        if budget.max_tokens is not None and self._total(*_TOKENS) + tokens >= budget.max_tokens:
            return f"the budget of {budget.max_tokens} tokens (--max-tokens) is spent"
        if budget.max_usd is not None and (self._usd() or 0.0) + usd >= budget.max_usd:
            return f"the budget of {budget.max_usd} USD (--max-usd) is spent"
        if budget.max_time_s is not None and time.monotonic() - self._started >= budget.max_time_s:
            return f"the time of {budget.max_time_s:g} s (--max-time) is over"
        return ""

    def _total(self, *names: str) -> int:
        return sum(counts[name] for counts in self._models.values() for name in names)

    def _usd(self) -> float | None:
        return reduce(_sum, self._usd_by_model.values(), 0.0)

    def _usual_answer(self, model: str) -> int:
        known = self._models.get(model)
        return round(known["output_tokens"] / known["calls"]) if known else FIRST_GUESS_TOKENS


def price_of(model: str, answer: Completion) -> float | None:
    """What an answer cost, in USD; None if its price is not known."""
    return cost_usd(
        model,
        answer.input_tokens,
        answer.output_tokens,
        cache_read_tokens=answer.cache_read_tokens,
        cache_write_tokens=answer.cache_write_tokens,
        batch=answer.batch,
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, eq=False)
class _Ahead:
    """A question on its way, and what it is expected to use."""

    model: str
    input_tokens: int
    output_tokens: int
