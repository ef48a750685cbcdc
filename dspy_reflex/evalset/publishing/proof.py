"""The proof that a set can be loaded: it is written to a scratch folder, loaded from there, and compared.

It is needed. `datasets` (5.2) takes JSON through a reader of its own that rounds floating-point numbers to about ten
digits, fails on whole numbers of more than 64 bits, turns a text in a `json` field that is itself JSON into its value, and
reads a column of dates as dates. The first is said in the card; the others are refused.
"""

from __future__ import annotations

import math
import tempfile
import textwrap
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from dspy_reflex.errors import DatasetError, MissingExtraError
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.publishing.front_matter import hub_split
from dspy_reflex.evalset.writing import to_object, write_splits

CARD = "README.md"
SHOWN = 60
"""Characters of a value in a message."""
ADVICE = "put the text or number there in an object, or write it another way"
CLOSE = 1e-9
"""How far a number may be from what it was, absolutely or relative to it."""


def prove(evalset: EvalSet, card: str) -> None:
    """Load a set as its users will, and compare every field of every row.

    Raises:
        DatasetError: It cannot be loaded, or comes back changed; names the rows and fields.
        MissingExtraError: `datasets` is not installed.
        OSError: The scratch folder cannot be written.
    """
    problems = Problems()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "set"
        write_splits(folder, evalset.splits)
        (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
        loaded = _load(folder, Path(scratch) / "cache", evalset.name)
    for name, rows in evalset.splits.items():
        found = loaded.get(hub_split(name, evalset.splits), [])
        for row, again in zip(rows, found, strict=True):
            wanted = to_object(row)
            for field in [field for field in again if not _same(wanted.get(field), again[field])]:
                shown = textwrap.shorten(repr(again[field]), SHOWN)
                problems.add(row.where, f"{field} of {row.id!r} comes back from `load_dataset` as {shown}; {ADVICE}")
    problems.raise_if_any()


def _load(folder: Path, cache: Path, name: str) -> Mapping[str, list[dict[str, Any]]]:
    """Every split as plain rows."""
    try:
        from datasets.exceptions import DatasetsError  # pyright: ignore[reportMissingTypeStubs]

        from datasets import load_dataset  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
    except ImportError:
        raise MissingExtraError("publishing a data set", "compile") from None
    load = cast(Any, load_dataset)
    try:
        with _quiet():
            splits = load(str(folder), cache_dir=str(cache), keep_in_memory=True)
    except (DatasetsError, ValueError, TypeError) as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise DatasetError(
            f"{name}: `datasets.load_dataset` cannot read it ({reason}); whole numbers must fit 64 bits"
        ) from None
    return {str(split): list(rows) for split, rows in splits.items()}


@contextmanager
def _quiet() -> Generator[None]:
    """No progress bars for a while; whoever had them off keeps them off."""
    from datasets.utils import (  # pyright: ignore[reportMissingTypeStubs]
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, types and all, but for rounding."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    if isinstance(one, dict):
        mine, theirs = cast(dict[str, Any], one), cast(dict[str, Any], other)
        return mine.keys() == theirs.keys() and all(_same(mine[key], theirs[key]) for key in mine)
    if isinstance(one, list):
        ours, theirs = cast(list[Any], one), cast(list[Any], other)
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return bool(one == other)
