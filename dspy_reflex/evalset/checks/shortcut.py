"""The shortcut test: can the label be told without reading what happened?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.difficulty import CIRCUMSTANCES, accuracy, dealt, guesses_from, guesses_from_words
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure

ABOVE_CONSTANT = 0.05
"""How far a circumstance alone may get above the constant answer."""
ENOUGH = 60
"""Rows below which nothing can be said: the standard error alone is over five points."""
SEEDS = (0, 1, 2)
"""Deals of units to folds that a figure is the mean of."""


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """Cross-validated accuracy without reading what happened."""

    n: int
    constant: float
    """Accuracy of the most frequent label."""
    alone: dict[str, float]
    """Accuracy of each circumstance alone."""
    words: float
    """Accuracy of TF-IDF with logistic regression."""

    def to_json(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self)


def measure_shortcuts(rows: Sequence[LabelledFailure]) -> Shortcuts:
    """Guess every labelled row from each circumstance and from the words, each time with its family held out.

    Raises:
        DatasetError: No row has a root cause.
    """
    if not rows:
        raise DatasetError("no row has a root cause, so nothing can give one away; label some first")
    labels = Counter(row.root_cause for row in rows)
    deals = [dealt(rows, seed) for seed in SEEDS]
    return Shortcuts(
        n=len(rows),
        constant=labels.most_common(1)[0][1] / len(rows),
        alone={
            name: sum(accuracy(rows, guesses_from(name, deal)) for deal in deals) / len(deals) for name in CIRCUMSTANCES
        },
        words=sum(accuracy(rows, guesses_from_words(deal)) for deal in deals) / len(deals),
    )


def shortcuts(evalset: EvalSet) -> Iterator[Finding]:
    """Circumstances that give the label away."""
    rows = evalset.rows
    if len(rows) < ENOUGH or len({row.root_cause for row in rows}) < 2 or len({row.unit for row in rows}) < 2:
        return
    found = measure_shortcuts(rows)
    for name, score in found.alone.items():
        if score > found.constant + ABOVE_CONSTANT:
            text = (
                f"{name} alone tells {score:.0%} of the labels, the constant answer {found.constant:.0%} (n={found.n}); "
                f"scores may measure {name}: report them by {name}, and leave values out in turn"
            )
            yield Finding("shortcut", "warning", evalset.name, text)
