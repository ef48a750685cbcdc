"""Our metrics in words, for optimizers that read: what the right answer was, what was told instead, and what tells them apart.

What is shaped as `dspy.GEPA` wants a metric: five arguments, and a `dspy.Prediction` of `score` and `feedback`. The line
`field, as labelled: answer` is the same for all fields, so that people, language models and the offline learner can find it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import dspy

from dspy_reflex.benchmark.rule_score import score_rule
from dspy_reflex.records.taxonomy import Taxonomy

ITEM = re.compile(r"^(?:-|\d+\.) ", re.MULTILINE)
"""How an item of a taxonomy's guide begins: a tie, or a question."""

Say = Callable[[Any, Any], str]
"""Feedback on a prediction to an example."""


class FeedbackMetric:
    """A metric that says why."""

    def __init__(self, metric: Callable[..., float], say: Say) -> None:
        """Score by `metric`, and explain by `say`."""
        self._metric, self._say = metric, say

    def __call__(self, gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        """Score and feedback; they are the same whoever asks, because a program is one predictor."""
        return dspy.Prediction(score=self._metric(gold, pred), feedback=self._say(gold, pred))


def feedback_for(program: str, taxonomy: Taxonomy) -> Say:
    """What to say about the answers of one program."""
    return rule_feedback if program == "rule" else lambda gold, pred: cause_feedback(taxonomy, gold, pred)


def cause_feedback(taxonomy: Taxonomy, gold: Any, pred: Any) -> str:
    """The right root cause; where another one was told, how the taxonomy tells the two apart."""
    right, told = gold.root_cause, getattr(pred, "root_cause", None)
    label = f"root_cause, as labelled: {right}"
    if told == right:
        return f"{label}\nThat was the answer."
    both = [name for name in (right, told) if name in taxonomy.labels]
    return "\n".join(
        [label, f"The answer was {told or 'of no use'}.", *_meanings(taxonomy, both), *_ties(taxonomy, both)]
    )


def rule_feedback(gold: Any, pred: Any) -> str:
    """The rule that people wrote, and what the rule score found missing in the one that was proposed."""
    labelled = gold.dspy_labelled
    score = score_rule(getattr(pred, "rule", None) or "", getattr(pred, "component", None), labelled)
    return "\n".join(
        [
            f"component, as labelled: {labelled.component}",
            f"rule, as labelled: {' '.join(labelled.reference_rule.split())}",
            f"The proposed rule scored {score.total:.2f} of 1. {score.feedback}".strip(),
        ]
    )


def _meanings(taxonomy: Taxonomy, names: list[str]) -> list[str]:
    found = [cause for name in names for cause in taxonomy.causes if cause.name == name]
    return [" ".join(f"{one.name}: {one.definition} {one.boundary}".split()) for one in found]


def _ties(taxonomy: Taxonomy, names: list[str]) -> list[str]:
    """The items of the guide that name both."""
    items = [" ".join(item.split()) for block in taxonomy.guide.split("\n\n") for item in ITEM.split(block)[1:]]
    ties = [item for item in items if len(names) > 1 and all(_names(item, name) for name in names)]
    return ["What tells them apart:", *(f"- {tie}" for tie in ties)] if ties else []


def _names(text: str, label: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text) is not None
