"""How an exported program does on rows: through the light runtime, because that is what will run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.predict import CauseAnswer, Contender, RuleProposed, cause_answers, rule_answers
from dspy_reflex.errors import BudgetError, ReflexError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.models.journaled import JournaledModel
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.runtime.artifact import Artifact

Out = TypeVar("Out")
Answers = tuple[CauseAnswer, ...] | tuple[RuleProposed, ...]


@dataclass(frozen=True)
class Measured:
    """Answers of a program to rows, and what they amount to."""

    rows: tuple[LabelledFailure, ...]
    answers: Answers
    on: str

    @classmethod
    def pooled(cls, parts: Sequence[Measured], on: str) -> Measured:
        """Several programs on rows that each has not seen, as one."""
        rows = tuple(row for part in parts for row in part.rows)
        return cls(rows, tuple(answer for part in parts for answer in part.answers), on)  # pyright: ignore[reportArgumentType]

    @property
    def scores(self) -> dict[str, Any]:
        """Metric, value, 95 % interval over units, n, and what it was measured on."""
        units = [row.unit for row in self.rows]
        proposed = [answer.score.total for answer in self.answers if isinstance(answer, RuleProposed)]
        if proposed:
            value, interval = sum(proposed) / len(proposed), statistics.mean_interval(proposed, units)
            return self._scores("rule score", value, interval)
        gold = [str(row.root_cause) for row in self.rows]
        told = [answer.label for answer in self.answers if isinstance(answer, CauseAnswer)]
        interval = statistics.interval(gold, told, units)
        return self._scores("macro-F1", statistics.macro_f1(gold, told), interval)

    @property
    def sure(self) -> tuple[list[float], list[bool], list[str]]:
        """Confidence, whether the answer was right, and unit, of the answers that name a cause and are sure to a degree."""
        told = [
            (answer.confidence, answer.label == row.root_cause, row.unit)
            for answer, row in zip(self.answers, self.rows, strict=True)
            if isinstance(answer, CauseAnswer) and answer.label is not None and answer.confidence is not None
        ]
        return [one for one, _, _ in told], [hit for _, hit, _ in told], [unit for _, _, unit in told]

    @property
    def unusable(self) -> int:
        """Answers that could not be used: refusals, and what was not in the form asked for."""
        return sum(bool(answer.problem) for answer in self.answers)

    @property
    def predictions(self) -> list[dict[str, Any]]:
        """One object a row, for the run's `predictions.jsonl`."""
        return [_prediction(row, answer) for row, answer in zip(self.rows, self.answers, strict=True)]

    def _scores(self, metric: str, value: float, interval: tuple[float, float]) -> dict[str, Any]:
        low, high = (round(bound, 4) for bound in interval)
        return {"metric": metric, "value": round(value, 4), "interval": [low, high], "n": len(self.rows), "on": self.on}


def measure(
    artifact: Artifact, model: JournaledModel, rows: Sequence[LabelledFailure], on: str, threads: int
) -> Measured:
    """Run an exported program on rows; `on` is what the scores call them.

    Raises:
        ModelUnavailableError: The model could not be reached: an outage is never scored.
        BudgetError: The run may not ask so much.
    """
    usable = tuple(row for row in rows if artifact.program == "root_cause" or row.reference_rule)
    contender = Contender(artifact.name, "program", artifact, model)
    ask = cause_answers if artifact.program == "root_cause" else rule_answers
    return Measured(usable, ask(contender, usable, threads, lambda: None), on)


@contextmanager
def meanwhile(measuring: Callable[[], Out], ledger: Ledger) -> Generator[Future[Out]]:
    """Measure while something else is done. When either goes wrong, nothing more is asked."""

    def measured() -> Out:
        try:
            return measuring()
        except ReflexError as error:
            ledger.stop(error)
            raise

    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(measured)
        except BaseException:
            ledger.stop(BudgetError("this sitting is over"))
            raise


@contextmanager
def beforehand(measuring: Callable[[], Out]) -> Generator[Future[Out]]:
    """Measure before something else is done."""
    measured: Future[Out] = Future()
    measured.set_result(measuring())
    yield measured


def beside(threads: int) -> int:
    """How many of so many threads may measure meanwhile: a place or two are left to those who cannot wait."""
    return max(1, threads * 3 // 4)


def _prediction(row: LabelledFailure, answer: CauseAnswer | RuleProposed) -> dict[str, Any]:
    known = {"id": row.id, "unit": row.unit, "gold": row.root_cause, "problem": answer.problem}
    if isinstance(answer, CauseAnswer):
        return {**known, "told": answer.label, "confidence": answer.confidence}
    return {**known, "component": answer.component, "rule": answer.rule, "score": round(answer.score.total, 4)}
