"""Divide labelled failures into train and val, or into folds, and never a unit (see `LabelledFailure.unit`).

All of it rests on scikit-learn's `StratifiedGroupKFold`, which deals whole units to folds and keeps every fold's mix of
labels near that of all rows. Same rows in the same order, same seed: same split.
"""

from __future__ import annotations

import random
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from dspy_reflex.errors import DatasetError, MissingExtraError
from dspy_reflex.evalset.labelled import LabelledFailure

VAL_SHARE = 0.35
"""Share of the rows that a program is chosen on. Large, because a choice between prompts needs evidence and a demo
pool does not."""
MAX_PARTS = 8
"""Most folds that a val share is put together from: enough to come within 3 points of any share."""

Rows = tuple[LabelledFailure, ...]


def split_rows(
    rows: Iterable[LabelledFailure], *, val_share: float = VAL_SHARE, seed: int = 0, by_source: bool = False
) -> tuple[Rows, Rows]:
    """Train and val, each in the order of `rows`; rows without a root cause are left out.

    Units with a label that no other unit has go to train: a program cannot learn a label that is in val alone. The
    rest is dealt to k folds, and m of them are val; m/k is the fraction nearest to `val_share` with k at most
    `MAX_PARTS` and at most the number of units. Of the runs of m neighbouring folds that one is taken which leaves
    fewest labels without a training row, then covers most labels, then is nearest in size.

    Args:
        rows: Labelled failures.
        val_share: Share of the rows that val should have, in (0, 1).
        seed: Deals the units.
        by_source: Keep every fold's mix of sources as well, where rows have one.

    Raises:
        DatasetError: All rows are one unit, or there are fewer than two.
        MissingExtraError: scikit-learn is not installed.
    """
    labelled = _labelled(rows)
    free = _divisible(labelled)
    units = len({row.unit for row in free})
    parts, taken = _fraction(val_share, min(MAX_PARTS, units))
    strata = [_stratum(row, by_source) for row in free]
    fold_of = _deal(free, strata, parts, seed)
    runs = [frozenset((start + step) % parts for step in range(taken)) for start in range(parts)]
    chosen = min(runs, key=lambda run: _cost(free, [fold in run for fold in fold_of], val_share * len(labelled)))
    in_val = {id(row) for row, fold in zip(free, fold_of, strict=True) if fold in chosen}
    return (
        tuple(row for row in labelled if id(row) not in in_val),
        tuple(row for row in labelled if id(row) in in_val),
    )


def folds(rows: Iterable[LabelledFailure], k: int, seed: int = 0) -> list[tuple[Rows, Rows]]:
    """Pairs of train and held-out rows in which every row with a root cause is held out once.

    Args:
        rows: Labelled failures.
        k: How many pairs; fewer if there are fewer units.
        seed: Deals the units.

    Raises:
        DatasetError: All rows are one unit, there are fewer than two, or `k` is below two.
        MissingExtraError: scikit-learn is not installed.
    """
    if k < 2:
        raise DatasetError(f"{k} folds: cross-validation needs at least 2")
    labelled = _labelled(rows)
    k = min(k, len({row.unit for row in labelled}))
    fold_of = _deal(labelled, [_stratum(row, False) for row in labelled], k, seed)
    pairs = [(fold, list(zip(labelled, fold_of, strict=True))) for fold in sorted(set(fold_of))]
    return [
        (tuple(row for row, other in dealt if other != fold), tuple(row for row, other in dealt if other == fold))
        for fold, dealt in pairs
    ]


def _labelled(rows: Iterable[LabelledFailure]) -> list[LabelledFailure]:
    labelled = [row for row in rows if row.root_cause is not None]
    units = {row.unit for row in labelled}
    if len(labelled) < 2:
        raise DatasetError(f"{len(labelled)} labelled failures cannot be split; label at least two")
    if len(units) < 2:
        raise DatasetError(
            f"all {len(labelled)} rows belong to {units.pop()!r} and cannot be split; "
            "give rows of different scenarios another `family` or `group`"
        )
    return labelled


def _divisible(rows: list[LabelledFailure]) -> list[LabelledFailure]:
    """The rows that may go to val; all of them where otherwise fewer than two units would be left."""
    units_of: dict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        units_of[row.root_cause].add(row.unit)
    alone = {unit for units in units_of.values() if len(units) == 1 for unit in units}
    free = [row for row in rows if row.unit not in alone]
    return free if len({row.unit for row in free}) > 1 else rows


def _fraction(share: float, most: int) -> tuple[int, int]:
    """The parts and how many of them to take: the nearest fraction to `share`, with as few parts as possible."""
    options = [(abs(taken / parts - share), parts, taken) for parts in range(2, most + 1) for taken in range(1, parts)]
    _, parts, taken = min(options)
    return parts, taken


def _cost(rows: Sequence[LabelledFailure], in_val: Sequence[bool], wanted: float) -> tuple[int, int, float]:
    """How bad a val set is: labels without a training row, labels that it lacks, distance from its size."""
    every = {row.root_cause for row in rows}
    val = {row.root_cause for row, inside in zip(rows, in_val, strict=True) if inside}
    train = {row.root_cause for row, inside in zip(rows, in_val, strict=True) if not inside}
    return len(every - train), len(every - val), abs(sum(in_val) - wanted)


def _stratum(row: LabelledFailure, by_source: bool) -> str:
    return f"{row.root_cause} in {row.source}" if by_source and row.source else str(row.root_cause)


def _deal(rows: Sequence[LabelledFailure], labels: Sequence[str], parts: int, seed: int) -> list[int]:
    """The fold of each row."""
    units = [row.unit for row in rows]
    if max(labels.count(label) for label in set(labels)) < parts:
        return _deal_unstratified(units, parts, seed)
    splitter = _model_selection().StratifiedGroupKFold(n_splits=parts, shuffle=True, random_state=seed)
    fold_of = [0] * len(rows)
    with warnings.catch_warnings():
        # It warns of every label with fewer rows than folds; here that is expected and harmless.
        warnings.simplefilter("ignore", UserWarning)
        for fold, (_, held_out) in enumerate(splitter.split(labels, labels, units)):
            for index in held_out:
                fold_of[int(index)] = fold
    return fold_of


def _deal_unstratified(units: Sequence[str], parts: int, seed: int) -> list[int]:
    """No label has as many rows as there are folds, so there is nothing to stratify: units in random order."""
    order = sorted(set(units))
    random.Random(seed).shuffle(order)
    fold_of_unit = {unit: position % parts for position, unit in enumerate(order)}
    return [fold_of_unit[unit] for unit in units]


def _model_selection() -> Any:
    """scikit-learn's splitters, untyped; imported late because it takes a second."""
    try:
        from sklearn import model_selection  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("splitting a data set", "compile") from None
    return model_selection
