"""How an exported program does on rows: through the light runtime, because that is what will run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.predict import CauseAnswer, Contender, RuleProposed, cause_answers, rule_answers
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.ledger import Ledger
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.runtime.lm.model import Completion, LanguageModel, Message

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
    def threshold(self) -> float | None:
        """The confidence that best tells right answers from wrong ones; None where there is nothing to tell apart.

        It maximises Youden's J, the share of right answers above it minus the share of wrong ones (W. J. Youden: Index
        for rating diagnostic tests, Cancer 1950). The lowest of equal ones is taken.
        """
        told = [answer for answer in self.answers if isinstance(answer, CauseAnswer)]
        sure = [(a.confidence or 0.0, a.label == row.root_cause) for a, row in zip(told, self.rows, strict=False)]
        right = [confidence for confidence, hit in sure if hit]
        wrong = [confidence for confidence, hit in sure if not hit]
        if not right or not wrong:
            return None
        return max(sorted({*right}), key=lambda cut: _above(right, cut) - _above(wrong, cut))

    def _scores(self, metric: str, value: float, interval: tuple[float, float]) -> dict[str, Any]:
        low, high = (round(bound, 4) for bound in interval)
        return {"metric": metric, "value": round(value, 4), "interval": [low, high], "n": len(self.rows), "on": self.on}


class _CountedModel:
    """A run-time model whose calls go on the compile's bill."""

    def __init__(self, model: LanguageModel, ledger: Ledger) -> None:
        self._model = model
        self._ledger = ledger
        self.name = model.name

    def complete(self, messages: list[Message]) -> Completion:
        return self._counted(self._model.complete(messages))

    async def acomplete(self, messages: list[Message]) -> Completion:
        return self._counted(await self._model.acomplete(messages))

    def _counted(self, answer: Completion) -> Completion:
        self._ledger.add("export", {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens})
        return answer


def measure(
    artifact: Artifact, lm: str, rows: Sequence[LabelledFailure], on: str, threads: int, ledger: Ledger
) -> Measured:
    """Run an exported program on rows; `on` is what the scores call them.

    Raises:
        ModelUnavailableError: The model could not be reached: an outage is never scored.
    """
    usable = tuple(row for row in rows if artifact.program == "root_cause" or row.reference_rule)
    contender = Contender(artifact.name, "program", artifact, _CountedModel(connect(lm), ledger))
    ask = cause_answers if artifact.program == "root_cause" else rule_answers
    return Measured(usable, ask(contender, usable, threads, lambda: None), on)


def _above(values: Sequence[float], cut: float) -> float:
    return sum(value >= cut for value in values) / len(values)
