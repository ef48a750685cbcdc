"""The pictures of a run, as PNG files. Numbers only: no text of a failure is ever drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from dspy_reflex.benchmark.confidence import Bin
from dspy_reflex.benchmark.pictures import blank, confusion_figure, png, reliability_figure
from dspy_reflex.runs.result import Candidate, CurvePoint

WIDTH, HEIGHT = 7.0, 3.6
"""Inches."""
TRIED, DROPPED, BEST = "#4c78a8", "#bbbbbb", "#e45756"


def candidates_png(candidates: Sequence[Candidate]) -> bytes:
    """The score of each candidate in the order they were tried, and the best so far."""
    figure = blank(WIDTH, HEIGHT)
    axes: Any = figure.subplots()
    scored = _scored(candidates)
    _dots(axes, scored, [each.candidate for each in scored])
    whole = [each for each in scored if not each.dropped]
    axes.step([each.candidate for each in whole], _best_so_far(whole), where="post", color=TRIED, label="best so far")
    axes.xaxis.get_major_locator().set_params(integer=True)
    _finish(axes, "candidate", "score")
    return png(figure)


def cost_png(candidates: Sequence[Candidate]) -> bytes:
    """Score against cost: the best so far over the tokens spent, and each candidate over the length of its prompt."""
    figure = blank(1.4 * WIDTH, HEIGHT)
    spent, prompt = figure.subplots(1, 2, sharey=True)
    scored = _scored(candidates)
    whole = sorted((each for each in scored if not each.dropped), key=lambda each: each.tokens)
    _dots(spent, scored, [each.tokens for each in scored])
    spent.step([each.tokens for each in whole], _best_so_far(whole), where="post", color=TRIED, label="best so far")
    _finish(spent, "tokens spent on the compile so far", "score")
    known = [each for each in scored if each.prompt_tokens is not None]
    _dots(prompt, known, [each.prompt_tokens for each in known])
    _finish(prompt, "tokens of the prompt, paid with every call", "")
    return png(figure)


def learning_curve_png(points: Sequence[CurvePoint], metric: str) -> bytes:
    """The score over the number of rows to learn from, with intervals."""
    figure = blank(WIDTH, HEIGHT)
    axes: Any = figure.subplots()
    rows, values = [each.rows for each in points], [each.value for each in points]
    reach = [each.interval or (each.value, each.value) for each in points]
    below = [max(0.0, value - low) for value, (low, _) in zip(values, reach, strict=True)]
    above = [max(0.0, high - value) for value, (_, high) in zip(values, reach, strict=True)]
    axes.errorbar(rows, values, yerr=[below, above], marker="o", capsize=3, color=TRIED)
    _finish(axes, "rows to learn from", metric)
    return png(figure)


def reliability_png(bins: Sequence[Bin], n: int) -> bytes:
    """The share right over confidence, as in a benchmark's report."""
    return png(reliability_figure(bins, (), f"n={n}"))


def confusion_png(counts: Sequence[Sequence[int]], labels: Sequence[str], n: int) -> bytes:
    """The confusion matrix, as in a benchmark's report."""
    return png(confusion_figure(counts, labels, f"n={n}"))


def _scored(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [each for each in candidates if each.score is not None]


def _best_so_far(candidates: Sequence[Candidate]) -> list[float]:
    return list(accumulate((each.score or 0.0 for each in candidates), max))


def _dots(axes: Any, candidates: Sequence[Candidate], places: Sequence[int | None]) -> None:
    kinds = [_kind(each) for each in candidates]
    for kind, color in (("dropped", DROPPED), ("tried", TRIED), ("chosen", BEST)):
        of_it = [(x, each.score) for x, each, its in zip(places, candidates, kinds, strict=True) if its == kind]
        if of_it:
            axes.scatter(*zip(*of_it, strict=True), color=color, label=kind, zorder=3)


def _kind(candidate: Candidate) -> str:
    if candidate.best:
        return "chosen"
    return "dropped" if candidate.dropped else "tried"


def _finish(axes: Any, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize="small")
