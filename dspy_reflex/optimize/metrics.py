"""Our metrics as ordinary DSPy metrics: `metric(example, prediction, trace=None) -> float`, higher is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dspy_reflex.benchmark.rule_score import score_rule
from dspy_reflex.evalset.labelled import LabelledFailure

GOOD_RULE = 0.6
"""A bootstrapped rule is taken as a demo from this score on."""


class CauseMetric:
    """1 for the right root cause, weighted so that every class of a set counts the same.

    Averaged over that set it is balanced accuracy. Weights of 1, the default, make it plain accuracy.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        """Weigh each gold label; labels not named weigh 1."""
        self.weights = weights or {}

    @classmethod
    def balanced_on(cls, rows: Sequence[LabelledFailure]) -> CauseMetric:
        """Weights n / (classes x n of the class) for a set of rows."""
        counts = Counter(row.root_cause or "" for row in rows)
        return cls({label: len(rows) / (len(counts) * count) for label, count in counts.items()})

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float:
        """The weight of the example if it was answered right, else 0."""
        if getattr(prediction, "root_cause", None) != example.root_cause:
            return 0.0
        return self.weights.get(example.root_cause, 1.0)


def rule_metric(example: Any, prediction: Any, trace: Any = None) -> float:
    """The rule score in [0, 1] (see `benchmark.rule_score`); while bootstrapping, whether it is a good rule.

    The example carries its labelled failure as `dspy_labelled`, a name that DSPy keeps out of prompts.
    """
    rule = getattr(prediction, "rule", None) or ""
    score = score_rule(rule, getattr(prediction, "component", None), example.dspy_labelled).total
    return score if trace is None else float(score >= GOOD_RULE)
