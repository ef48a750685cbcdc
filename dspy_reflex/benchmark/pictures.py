"""Pictures drawn without a display and without the state that pyplot keeps: the same figures give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from dspy_reflex.benchmark.confidence import Bin
from dspy_reflex.errors import MissingExtraError

NO_ANSWER = "no answer"
"""The column of refusals and unparsable answers."""
SIDE = 4.2
"""Of a square picture, in inches."""
BLUE, GREY = "#4c78a8", "#bbbbbb"


def blank(width: float, height: float) -> Any:
    """An empty matplotlib figure, sizes in inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a picture", "compile") from None
    figure: Any = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any) -> bytes:
    """A figure as a file, without versions and dates."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120, metadata={"Software": None})
    return picture.getvalue()


def confusion_figure(counts: Sequence[Sequence[int]], labels: Sequence[str], title: str) -> Any:
    """A confusion matrix: a line per gold label, a column per answer, the last one for no answer.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    size = 3.0 + 0.6 * len(labels)
    figure = blank(size + 0.6, size)
    axes: Any = figure.subplots()
    axes.imshow(counts, cmap="Blues", aspect="auto")
    top = max(max(line) for line in counts)
    for y, line in enumerate(counts):
        for x, count in enumerate(line):
            axes.text(x, y, str(count), ha="center", va="center", color="white" if count > top / 2 else "black")
    axes.set_xticks(range(len(labels) + 1), [*labels, NO_ANSWER], rotation=45, ha="right")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("answer")
    axes.set_ylabel("gold")
    axes.set_title(title, parse_math=False)
    return figure


def reliability_figure(bins: Sequence[Bin], before: Sequence[Bin], title: str) -> Any:
    """The share right over confidence, calibrated and (if there is a `before`) as the model stated it.

    A program that is as sure as it is right lies on the diagonal. The larger a dot, the more answers.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = blank(SIDE, SIDE)
    axes: Any = figure.subplots()
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="as sure as right")
    if before:
        _draw_bins(axes, before, GREY, "as stated")
    _draw_bins(axes, bins, BLUE, "calibrated" if before else "as stated")
    for each in bins:
        axes.annotate(f"n={each.n}", (each.confidence, each.right), xytext=(6, -12), textcoords="offset points")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="confidence", ylabel="share right")
    axes.set_title(title, parse_math=False)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return figure


def _draw_bins(axes: Any, bins: Sequence[Bin], color: str, label: str) -> None:
    across, up = [each.confidence for each in bins], [each.right for each in bins]
    axes.plot(across, up, color=color, linewidth=1, label=label)
    most = max(each.n for each in bins)
    axes.scatter(across, up, s=[20 + 180 * each.n / most for each in bins], color=color, zorder=3)
