"""A data set counted: tables with pandas, plots with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.difficulty import words_of
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.untrusted import as_text

NONE = "(none)"
"""The root cause of rows that have none."""
TOTAL = "(all)"
"""Row and column of totals: no label, split or domain is called that."""
COUNTED = ("split", "domain", "kind", "source", "component", "severity")
"""Fields that are counted against the root cause, where the rows have them."""


def to_frame(evalset: EvalSet) -> Any:
    """A `pandas.DataFrame` with one row a failure: id, split, root cause, the counted fields, and length in characters.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return _pandas().DataFrame(
        [
            {
                "id": row.id,
                "split": split,
                "root_cause": row.root_cause or NONE,
                "characters": len(words_of(row)),
                "votes": len(row.votes),
                **{name: _countable(row.value(name)) for name in COUNTED if name != "split"},
            }
            for split, rows in evalset.splits.items()
            for row in rows
        ]
    )


def _countable(value: JsonValue) -> str | None:
    return None if value is None else as_text(value)


def counts(frame: Any, by: str) -> Any:
    """Rows per value of a field and root cause, with totals."""
    pandas = _pandas()
    return pandas.crosstab(frame[by].fillna(NONE), frame["root_cause"], margins=True, margins_name=TOTAL)


def tables(frame: Any) -> dict[str, Any]:
    """One table for each counted field that has more than one value, and the lengths by root cause."""
    found = {by: counts(frame, by) for by in COUNTED if frame[by].nunique() > 1}
    lengths = frame.groupby("root_cause")["characters"].describe(percentiles=[0.1, 0.5, 0.9])
    return {**found, "characters": lengths[["count", "mean", "10%", "50%", "90%"]].round(0).astype(int)}


def plot(frame: Any, folder: Path) -> Sequence[Path]:
    """Write `counts.png` (rows by split and cause) and `lengths.png` (characters by cause).

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plots", "compile") from None
    folder.mkdir(parents=True, exist_ok=True)
    bars: Any = Figure(figsize=(8, 4), layout="constrained")
    boxes: Any = Figure(figsize=(8, 4), layout="constrained")
    table = counts(frame, "split").drop(index=TOTAL, columns=TOTAL)
    table.plot.bar(stacked=True, ax=bars.subplots(), rot=0, xlabel="", ylabel="failures")
    causes = sorted(frame["root_cause"].unique())
    axes: Any = boxes.subplots()
    axes.boxplot(
        [list(frame.loc[frame["root_cause"] == cause, "characters"]) for cause in causes], orientation="horizontal"
    )
    axes.set_yticks(range(1, len(causes) + 1), causes)
    axes.set_xlabel("characters that a program sees")
    places = [folder / "counts.png", folder / "lengths.png"]
    for figure, place in zip((bars, boxes), places, strict=True):
        figure.savefig(place, dpi=120, metadata={"Software": None})
    return places


def _pandas() -> Any:
    try:
        import pandas  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("tables", "compile") from None
    return pandas
