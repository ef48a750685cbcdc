"""Two programs on the rows that both answered: how far they differ, and how sure that is. Second minus first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.statistics import Interval
from dspy_reflex.runs.result import Prediction

Pairs = Sequence[tuple[Prediction, Prediction]]


@dataclass(frozen=True)
class Paired:
    """What the predictions of both amount to."""

    metric: str
    """Macro-F1 of root causes, the rule score of rules."""
    n: int
    units: int
    """What was resampled: families, groups, or single rows."""
    relabelled: int
    """Rows in both that were left out, because their labels differ."""
    first: float
    second: float
    difference: float
    interval: Interval
    """Paired bootstrap over units."""
    only_first_right: int | None = None
    """None for rules, which are not right or wrong."""
    only_second_right: int | None = None
    mcnemar_p: float | None = None
    """Exact, two-sided, on accuracy."""


def pair(first: Iterable[Prediction], second: Iterable[Prediction]) -> Paired | None:
    """Hold predictions against others of the same kind on the same rows; None if there are none.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    mine = {one.id: one for one in first}
    known = [(mine[one.id], one) for one in second if one.id in mine]
    both = [(one, other) for one, other in known if (one.score is None) == (other.score is None)]
    same = [(one, other) for one, other in both if one.gold == other.gold and one.gold is not None]
    if not same:
        return None
    judge = _causes if same[0][0].score is None else _rules
    return judge(same, len(both) - len(same))


def _causes(pairs: Pairs, relabelled: int) -> Paired:
    gold, units = [str(one.gold) for one, _ in pairs], _units(pairs)
    told = [[both[side].told for both in pairs] for side in (0, 1)]
    right = [[both[side].right for both in pairs] for side in (0, 1)]
    first, second = (statistics.macro_f1(gold, answers) for answers in told)
    return Paired(
        "macro-F1", len(pairs), len(set(units)), relabelled, first, second, second - first,
        statistics.difference_interval(gold, told[1], told[0], units),
        sum(one and not other for one, other in zip(*right, strict=True)),
        sum(other and not one for one, other in zip(*right, strict=True)),
        statistics.mcnemar(right[1], right[0]),
    )  # fmt: skip


def _rules(pairs: Pairs, relabelled: int) -> Paired:
    units, n = _units(pairs), len(pairs)
    first, second = (sum(both[side].score or 0.0 for both in pairs) / n for side in (0, 1))
    gaps = [(other.score or 0.0) - (one.score or 0.0) for one, other in pairs]
    interval = statistics.mean_difference_interval(gaps, units)
    return Paired("rule score", n, len(set(units)), relabelled, first, second, second - first, interval)


def _units(pairs: Pairs) -> list[str]:
    return [one.unit or one.id for one, _ in pairs]
