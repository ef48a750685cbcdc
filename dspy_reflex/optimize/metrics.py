"""Our metrics as ordinary DSPy metrics: `metric(example, prediction, trace=None) -> float`, higher is better.

What no metric of single rows can say, macro-F1 and the cost of a whole set, is a criterion: predictions in, score out.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dspy_reflex.benchmark.rule_score import score_rule
from dspy_reflex.benchmark.statistics import macro_f1
from dspy_reflex.errors import CompileError, ConfigError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.models.ledger import Stop
from dspy_reflex.optimize.options import Cost

GOOD_RULE = 0.6
"""A bootstrapped rule is taken as a demo from this score on."""
USUAL_COST = 1.0

Criterion = Callable[[Mapping[str, Any]], float]
"""Score in [0, 1] of the predictions to rows, by row hash."""


def guarded(metric: Callable[..., float]) -> Callable[..., float]:
    """A metric whose own mistakes end the compile: DSPy would score them as 0 and go on."""

    def one(example: Any, prediction: Any, trace: Any = None) -> float:
        try:
            return metric(example, prediction, trace)
        except Exception as error:
            row = example.get("dspy_id")
            raise Stop(CompileError(f"the metric fails on row {row!r} ({error!r}); nothing was scored")) from error

    return one


class CauseMetric:
    """1 for the right root cause, weighted so that every class of a set counts the same.

    Averaged over that set it is balanced accuracy. Weights of 1, the default, make it plain accuracy. With costs, a
    mistake gets 1 - cost / highest cost.
    """

    def __init__(self, weights: Mapping[str, float] | None = None, costs: Sequence[Cost] = ()) -> None:
        """Weigh each gold label; labels not named weigh 1."""
        self.weights = weights or {}
        self.costs = CostTable(costs)

    @classmethod
    def balanced_on(cls, rows: Sequence[LabelledFailure], costs: Sequence[Cost] = ()) -> CauseMetric:
        """Weights n / (classes x n of the class) for a set of rows."""
        counts = Counter(row.root_cause or "" for row in rows)
        return cls({label: len(rows) / (len(counts) * count) for label, count in counts.items()}, costs)

    def unweighted(self) -> CauseMetric:
        """The same with weights of 1, for comparing answers to one row."""
        plain = CauseMetric()
        plain.costs = self.costs
        return plain

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float:
        """The weight of the example if it was answered right, else 0; while bootstrapping, only what is right counts."""
        told = getattr(prediction, "root_cause", None)
        if trace is not None and told != example.root_cause:
            return 0.0
        return self.costs.score(example.root_cause, told) * self.weights.get(example.root_cause, 1.0)


class CostTable:
    """How bad each mistake is. No answer is as bad as the worst mistake for its root cause."""

    def __init__(self, costs: Iterable[Cost] = ()) -> None:
        """Costs of some mistakes; all others cost 1."""
        self._costs = {(gold, told): cost for gold, told, cost in costs}
        self._highest = max([USUAL_COST, *self._costs.values()])

    def score(self, gold: str, told: str | None) -> float:
        """1 for a right answer, 0 for the worst mistake there is."""
        return 1.0 - self._cost(gold, told) / self._highest

    def _cost(self, gold: str, told: str | None) -> float:
        if told == gold:
            return 0.0
        if told is None:
            return max([USUAL_COST, *(cost for (cause, _), cost in self._costs.items() if cause == gold)])
        return self._costs.get((gold, told), USUAL_COST)


def check_costs(costs: Sequence[Cost], labels: Sequence[str]) -> None:
    """Say what is wrong with a cost before anything is spent.

    Raises:
        ConfigError: A label is not known, or a cost is no number above 0.
    """
    for gold, told, cost in costs:
        if unknown := [label for label in (gold, told) if label not in labels]:
            raise ConfigError(f"--cost: there is no root cause {unknown[0]!r}; there are {', '.join(labels)}")
        if gold == told or not 0 < cost < float("inf"):
            raise ConfigError(f"--cost {gold}:{told}={cost:g}: give two different causes and a number above 0")


def cause_criterion(rows: Sequence[LabelledFailure], costs: Sequence[Cost] = ()) -> Criterion:
    """Macro-F1 over the rows that were predicted; with costs, the cost score with all classes counting the same."""
    gold = {row.row_hash: row.root_cause or "" for row in rows}
    table = CostTable(costs)

    def criterion(predictions: Mapping[str, Any]) -> float:
        told = {row: getattr(prediction, "root_cause", None) for row, prediction in predictions.items()}
        if not told:
            return 0.0
        if not costs:
            return macro_f1([gold[row] for row in told], list(told.values()))
        points: dict[str, list[float]] = defaultdict(list)
        for row, label in told.items():
            points[gold[row]].append(table.score(gold[row], label))
        return statistics.fmean(map(statistics.fmean, points.values()))

    return criterion


def rule_criterion(rows: Sequence[LabelledFailure]) -> Criterion:
    """The mean rule score."""
    by_hash = {row.row_hash: row for row in rows}

    def criterion(predictions: Mapping[str, Any]) -> float:
        scores = [_rule_score(prediction, by_hash[row]) for row, prediction in predictions.items()]
        return statistics.fmean(scores) if scores else 0.0

    return criterion


def rule_metric(example: Any, prediction: Any, trace: Any = None) -> float:
    """The rule score in [0, 1] (see `benchmark.rule_score`); while bootstrapping, whether it is a good rule.

    The example carries its labelled failure as `dspy_labelled`, a name that DSPy keeps out of prompts.
    """
    score = _rule_score(prediction, example.dspy_labelled)
    return score if trace is None else float(score >= GOOD_RULE)


def _rule_score(prediction: Any, row: LabelledFailure) -> float:
    rule = getattr(prediction, "rule", None) or ""
    return score_rule(rule, getattr(prediction, "component", None), row).total
