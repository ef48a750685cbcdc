"""Scores of answers, and how sure they are: vectorised, seeded, over units and not over rows.

Rows of one family or question fall together, so intervals resample units (see `LabelledFailure.unit`): a percentile
bootstrap by scipy. A percentile interval of macro-F1 can miss its own point on few rows; it is then widened to touch
it. With one unit there is nothing to resample, and the interval is all that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dspy_reflex.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 2_000
CONFIDENCE = 0.95
BINS = 10
"""Equal-width bins of confidence in the calibration error."""

Interval = tuple[float, float]
Labels = Sequence[str]
Answers = Sequence[str | None]
"""Predicted labels; None where there was no usable answer, which is a miss."""


@dataclass(frozen=True, slots=True)
class ClassScore:
    """How one label came out."""

    label: str
    precision: float
    """0 if it was never answered."""
    recall: float
    """0 if it never was the gold label."""
    f1: float
    support: int
    """Rows with this gold label."""
    predicted: int
    """Rows with this answer."""


def accuracy(gold: Labels, answers: Answers) -> float:
    """Share of right answers."""
    return sum(map(_equal, gold, answers)) / len(gold)


def hit_rate(gold: Labels, also: Sequence[Sequence[str]], answers: Answers) -> float:
    """Share of answers that are the gold label or one that is also acceptable."""
    return sum(map(_hit, gold, also, answers)) / len(gold)


def per_class(gold: Labels, answers: Answers, labels: Labels) -> tuple[ClassScore, ...]:
    """Precision, recall and F1 of each label, in the order of `labels`."""
    return tuple(_class_score(label, gold, answers) for label in labels)


def macro_f1(gold: Labels, answers: Answers) -> float:
    """Mean F1 over the labels that occur in the gold."""
    scores = per_class(gold, answers, sorted(set(gold)))
    return sum(score.f1 for score in scores) / len(scores)


def brier(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Mean squared distance of confidence from the truth, in [0, 1]; 0 is best."""
    return sum((confidence - hit) ** 2 for confidence, hit in zip(confidences, right, strict=True)) / len(right)


def ece(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Expected calibration error: mean distance of confidence from the share right, over ten bins; 0 is best."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, hit in zip(confidences, right, strict=True):
        bins[min(int(confidence * BINS), BINS - 1)].append((confidence, hit))
    gaps = [abs(sum(confidence - hit for confidence, hit in members)) for members in bins]
    return min(1.0, sum(gaps) / len(right))


def interval(gold: Labels, answers: Answers, units: Sequence[str], seed: int = 0) -> Interval:
    """Bootstrap interval of macro-F1."""
    counts = _Counts(gold, units)
    score = counts.macro_f1_of(answers)
    return bootstrap(score, counts.units, (0.0, 1.0), seed)


def difference_interval(gold: Labels, first: Answers, second: Answers, units: Sequence[str], seed: int = 0) -> Interval:
    """Paired bootstrap interval of macro-F1 of `first` minus that of `second`, on the same resamples."""
    counts = _Counts(gold, units)
    one, other = counts.macro_f1_of(first), counts.macro_f1_of(second)
    return bootstrap(lambda weights: one(weights) - other(weights), counts.units, (-1.0, 1.0), seed)


def mean_interval(values: Sequence[float], units: Sequence[str], seed: int = 0) -> Interval:
    """Bootstrap interval of the mean of values in [0, 1]."""
    return _mean_interval(values, units, (0.0, 1.0), seed)


def mean_difference_interval(differences: Sequence[float], units: Sequence[str], seed: int = 0) -> Interval:
    """Bootstrap interval of the mean of paired differences in [-1, 1]."""
    return _mean_interval(differences, units, (-1.0, 1.0), seed)


def _mean_interval(values: Sequence[float], units: Sequence[str], possible: Interval, seed: int) -> Interval:
    np = _numpy()
    names, member, sizes = np.unique(list(units), return_inverse=True, return_counts=True)
    sums = np.bincount(member, weights=np.asarray(values, dtype=float))
    return bootstrap(lambda weights: (weights @ sums) / (weights @ sizes), len(names), possible, seed)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Exact two-sided McNemar p-value: do two contenders miss different rows more often than chance would have it?"""
    only_first = sum(one and not other for one, other in zip(first, second, strict=True))
    only_second = sum(other and not one for one, other in zip(first, second, strict=True))
    if only_first + only_second == 0:
        return 1.0
    return float(_scipy_stats().binomtest(only_first, only_first + only_second, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values corrected for their number, in the same order (S. Holm, Scandinavian Journal of Statistics 6, 1979)."""
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return tuple(corrected)


def _equal(gold: str, answer: str | None) -> bool:
    return gold == answer


def _hit(gold: str, also: Sequence[str], answer: str | None) -> bool:
    return answer == gold or answer in also


def _class_score(label: str, gold: Labels, answers: Answers) -> ClassScore:
    support, predicted = sum(name == label for name in gold), sum(name == label for name in answers)
    right = sum(one == other == label for one, other in zip(gold, answers, strict=True))
    precision, recall = (right / predicted if predicted else 0.0), (right / support if support else 0.0)
    f1 = 2 * right / (support + predicted) if support + predicted else 0.0
    return ClassScore(label, precision, recall, f1, support, predicted)


class _Counts:
    """Gold labels counted by unit, so that a resample is one matrix product and not a pass over rows."""

    def __init__(self, gold: Labels, units: Sequence[str]) -> None:
        np = _numpy()
        names, member = np.unique(list(units), return_inverse=True)
        self.units = len(names)
        self._gold, self._member, self._labels = list(gold), member, sorted(set(gold))
        self._support = self._by_unit(gold)

    def macro_f1_of(self, answers: Answers) -> Callable[[Floats], Floats]:
        """Macro-F1 of these answers as a function of how often each unit was drawn, one resample a row."""
        predicted = self._by_unit(answers)
        right = self._by_unit([one if one == other else None for one, other in zip(self._gold, answers, strict=True)])
        return lambda weights: _macro_f1(weights @ right, weights @ predicted, weights @ self._support)

    def _by_unit(self, names: Answers) -> Floats:
        np = _numpy()
        table = np.zeros((self.units, len(self._labels)))
        column = {label: index for index, label in enumerate(self._labels)}
        for unit, name in zip(self._member, names, strict=True):
            if name in column:
                table[unit, column[name]] += 1
        return table


def _macro_f1(right: Floats, predicted: Floats, support: Floats) -> Floats:
    """Mean F1 over the labels that a resample has, a resample a row."""
    np = _numpy()
    f1 = 2 * right / np.maximum(support + predicted, 1)
    return (f1 * (support > 0)).sum(axis=-1) / (support > 0).sum(axis=-1)


def bootstrap(score: Callable[[Floats], Floats], units: int, possible: Interval, seed: int) -> Interval:
    """Percentile interval of a score, which takes the number of times that each unit was drawn, a resample a row."""
    if units < 2:
        return possible
    np = _numpy()

    def statistic(drawn: NDArray[np.int64], axis: int) -> Floats:
        flat = np.moveaxis(drawn, axis, -1).reshape(-1, units)
        counts = np.zeros((len(flat), units))
        np.add.at(counts, (np.arange(len(flat))[:, None], flat), 1)
        return score(counts).reshape(drawn.shape[:-1])

    found = _scipy_stats().bootstrap(
        (np.arange(units),), statistic, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, method="percentile",
        vectorized=True, axis=-1, rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    point = float(score(np.ones((1, units)))[0])
    return min(float(found.low), point), max(float(found.high), point)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise MissingExtraError("an interval", "compile") from None
    return numpy


def _scipy_stats() -> Any:
    try:
        from scipy import stats  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("an interval", "compile") from None
    return stats
