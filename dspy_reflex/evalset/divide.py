"""Divide a whole data set into train, val, test and, on request, test_hard: by family or group, stratified, seeded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.difficulty import dealt, guesses_from_words
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.split import split_rows

SEEDS = (0, 1, 2)
"""Deals to folds over which difficulty is averaged."""

Splits = dict[str, tuple[LabelledFailure, ...]]


@dataclass(frozen=True, slots=True)
class Shares:
    """How much of the labelled rows goes where; the rest is train."""

    val: float = 0.15
    test: float = 0.3
    hard: float = 0.0
    """Share of `test_hard`: families that words do not solve, or that annotators disagreed on."""


def divide(rows: Sequence[LabelledFailure], shares: Shares, seed: int = 0) -> Splits:
    """Splits of the rows that have a root cause, in the order of `rows`; no unit is in two of them.

    Args:
        rows: Labelled failures.
        shares: What goes where.
        seed: Deals the units.

    Raises:
        DatasetError: The shares leave nothing to learn from, no row has a root cause, or the rows cannot be divided.
        MissingExtraError: scikit-learn is not installed.
    """
    if min(shares.val, shares.test, shares.hard) < 0 or shares.val + shares.test + shares.hard >= 1:
        raise DatasetError("the shares of val, test and test_hard must leave something for train; lower them")
    labelled = tuple(row for row in rows if row.root_cause is not None)
    if not labelled:
        raise DatasetError("no row has a root cause, so there is nothing to divide; label some first")
    left, splits = labelled, Splits()
    if shares.hard:
        splits["test_hard"] = _hardest(labelled, round(shares.hard * len(labelled)))
        left = _without(labelled, splits["test_hard"])
    for name, share in (("test", shares.test), ("val", shares.val)):
        if share:
            left, splits[name] = split_rows(
                left, val_share=share * len(labelled) / len(left), seed=seed, by_source=True
            )
    return {"train": left, **{name: splits[name] for name in ("val", "test", "test_hard") if name in splits}}


def _hardest(rows: tuple[LabelledFailure, ...], wanted: int) -> tuple[LabelledFailure, ...]:
    """About so many rows: whole units, hardest first, as long as no label gets more than its share."""
    quota = max(1.0, wanted / len({row.root_cause for row in rows}))
    units: Mapping[str, list[LabelledFailure]] = defaultdict(list)
    for row in rows:
        units[row.unit].append(row)
    hard = _hardness(rows)
    order = sorted(units, key=lambda unit: (-sum(hard[row.id] for row in units[unit]) / len(units[unit]), unit))
    taken: Counter[str | None] = Counter()
    chosen: set[str] = set()
    for unit in order:
        causes = Counter(row.root_cause for row in units[unit])
        if all(taken[cause] + count <= quota for cause, count in causes.items()):
            taken += causes
            chosen.add(unit)
    if not chosen:
        raise DatasetError("no family is small enough for test_hard; raise --hard, or leave it out")
    return tuple(row for row in rows if row.unit in chosen)


def _hardness(rows: Sequence[LabelledFailure]) -> dict[str, float]:
    """Row id to how often words miss it when its family is held out, plus one if its annotators disagree."""
    missed = {row.id: 0.0 for row in rows}
    for seed in SEEDS:
        guesses = guesses_from_words(dealt(rows, seed))
        for row in rows:
            missed[row.id] += (guesses[row.id] != row.root_cause) / len(SEEDS)
    return {row.id: missed[row.id] + (len({vote.root_cause for vote in row.votes}) > 1) for row in rows}


def _without(rows: Sequence[LabelledFailure], gone: Sequence[LabelledFailure]) -> tuple[LabelledFailure, ...]:
    units = {row.unit for row in gone}
    return tuple(row for row in rows if row.unit not in units)
