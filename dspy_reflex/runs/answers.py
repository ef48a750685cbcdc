"""What the predictions on val amount to: confusion, mistakes, unusable answers, and how far confidence can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dspy_reflex.benchmark import statistics
from dspy_reflex.runs.result import Prediction

Predictions = Sequence[Prediction]


def judged(predictions: Predictions) -> list[Prediction]:
    """Root causes, which are right or wrong."""
    return [one for one in predictions if one.gold is not None and one.score is None]


def scored(predictions: Predictions) -> list[Prediction]:
    """Rules, which are better or worse; the worst first."""
    rules = [one for one in predictions if one.score is not None]
    return sorted(rules, key=lambda one: (one.score or 0.0, one.id))


def labels_of(predictions: Predictions, known: Sequence[str] = ()) -> list[str]:
    """The label set: `known` in its order, then what else occurs."""
    seen = {name for one in predictions for name in (one.gold, one.told) if name is not None}
    return [*known, *sorted(seen - set(known))]


def confusion(predictions: Predictions, labels: Sequence[str]) -> list[list[int]]:
    """Answers: a line per gold label, a column per answer, the last one for no answer."""
    counts = Counter((one.gold, one.told) for one in predictions)
    return [[counts[gold, told] for told in (*labels, None)] for gold in labels]


def mistakes(predictions: Predictions) -> list[Prediction]:
    """Rows answered with another label than theirs, the surest first."""
    wrong = [one for one in judged(predictions) if one.told is not None and not one.right]
    return sorted(wrong, key=lambda one: (-(one.confidence or 0.0), one.id))


def unusable(predictions: Predictions) -> list[Prediction]:
    """Rows without a usable answer, in order."""
    return [one for one in judged(predictions) if one.told is None]


def sure(predictions: Predictions) -> tuple[list[float], list[bool]]:
    """Confidence, and whether it was right, of the answers that came with one."""
    pairs = [(one.confidence, one.right) for one in judged(predictions) if one.told is not None]
    known = [(confidence, right) for confidence, right in pairs if confidence is not None]
    return [confidence for confidence, _ in known], [right for _, right in known]


def reliability_line(predictions: Predictions) -> str:
    """Calibration error and Brier score in words; empty if no answer came with a confidence."""
    confidences, right = sure(predictions)
    if not confidences:
        return ""
    ece, brier = statistics.ece(confidences, right), statistics.brier(confidences, right)
    return f"Confidence of {len(right)} answers, as stated: ECE {ece:.3f}, Brier {brier:.3f}, {sum(right) / len(right):.3f} right."
