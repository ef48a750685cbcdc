"""What does it cost to be as good as stock DSPy's MIPROv2? Model calls and tokens, counted by the server. Goal: 60 %.

    python -m benchmarks.compile_cost          writes experiments/compile-cost, in about ten minutes

For each seed stock DSPy compiles first, with its own cache on and new. Its final program's score on val is the mark; what
counts is what our compile had spent when a program of its own had first reached it. A seed that never gets there counts
as infinite. The test split is read once, at the end, by nothing but this; `--without-test` is for trying things out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.model_server import ModelServer, serving
from benchmarks.rivals import SIZES, Outcome, Scored, Task, ours, rows_of, stock
from dspy_reflex.benchmark.markdown import table
from dspy_reflex.benchmark.pictures import BLUE, GREY, blank, png
from dspy_reflex.benchmark.predict import Contender, cause_answers
from dspy_reflex.benchmark.statistics import difference_interval, interval, macro_f1
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.lm.connect import connect

OUT = Path("experiments/compile-cost")
SEEDS = (0, 1, 2, 3, 4)
THREADS = 4
GOAL = 0.6
UNITS = ("calls", "tokens")
SIDES = ("stock", "ours")
NEAR = 1e-9
"""Scores are sums of floats."""

Pair = tuple[Outcome, Outcome]
"""Stock DSPy's compile and ours."""


def main() -> None:
    """Compile, compare and write."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="seeds of the compiles (default: 0 to 4)")
    made.add_argument("--without-test", action="store_true", help="leave the test split alone")
    made.add_argument("--out", type=Path, default=OUT, help=f"folder for the outcome (default: {OUT})")
    options = made.parse_args()
    with serving() as server:
        pairs = {seed: compiled(seed, server) for seed in options.seeds}
    result = compared(pairs)
    if not options.without_test:
        result["test"] = tested(pairs)
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", render(result).encode())
    write_atomic(options.out / "curve.png", png(picture(result["seeds"])))
    print(render(result))


def compiled(seed: int, server: ModelServer) -> Pair:
    """Both compiles of a seed."""
    train, val = rows_of("train", "val")
    task = Task(train, val, seed, THREADS)
    pair = stock(task, server, f"stock-{seed}"), ours(task, server, f"ours-{seed}")
    print(json.dumps({"seed": seed, "ratio": _seed(seed, *pair)["ratio"]}), file=sys.stderr, flush=True)
    return pair


def reached(outcome: Outcome, score: float) -> Scored | None:
    """The first program that is as good as that."""
    return next((one for one in outcome.scored if one.score >= score - NEAR), None)


def compared(pairs: Mapping[int, Pair]) -> dict[str, Any]:
    """What each seed cost, and the medians."""
    seeds = [_seed(seed, *pair) for seed, pair in pairs.items()]
    return {
        "benchmark": "compile_cost",
        "goal": GOAL,
        "sizes": SIZES,
        "ratio": {unit: middle([one["ratio"][unit] for one in seeds]) for unit in UNITS},
        "whole_ratio": {unit: middle([one["whole_ratio"][unit] for one in seeds]) for unit in UNITS},
        "never_reached": sum(one["ratio"]["calls"] is None for one in seeds),
        "seeds": seeds,
    }


def middle(ratios: Sequence[float | None]) -> float | None:
    """The median; None, a mark that was never reached, is infinite."""
    found = median(inf if ratio is None else ratio for ratio in ratios)
    return round(found, 3) if isfinite(found) else None


def tested(pairs: Mapping[int, Pair]) -> dict[str, Any]:
    """Macro-F1 of the final programs on test; the difference is over the answers of all seeds, resampled by unit."""
    (rows,) = rows_of("test")
    gold, units = [str(row.root_cause) for row in rows], [row.unit for row in rows]
    model = connect("offline")

    def answers(program: Any) -> list[str | None]:
        contender = Contender("", "program", publish(program), model)
        return [answer.label for answer in cause_answers(contender, rows, 1, lambda: None)]

    def scored(labels: Sequence[str | None]) -> dict[str, Any]:
        return {"macro_f1": round(macro_f1(gold, labels), 4), "interval": _rounded(interval(gold, labels, units))}

    told = {
        side: {seed: answers(pair[place].program) for seed, pair in pairs.items()} for place, side in enumerate(SIDES)
    }
    theirs, own = ([label for labels in told[side].values() for label in labels] for side in SIDES)
    difference = difference_interval(gold * len(pairs), own, theirs, units * len(pairs))
    return {
        "rows": len(rows),
        **{side: round(fmean(macro_f1(gold, labels) for labels in told[side].values()), 4) for side in SIDES},
        "ours_minus_stock": _rounded(difference),
        "seeds": [{"seed": seed, **{side: scored(told[side][seed]) for side in SIDES}} for seed in pairs],
    }


def picture(seeds: Sequence[Mapping[str, Any]]) -> Any:
    """Best score so far over calls and over tokens: each seed thin, the median of the seeds thick."""
    figure = blank(9.0, 3.8)
    for axes, unit in zip(figure.subplots(1, 2, sharey=True), UNITS, strict=True):
        for side, colour, name in (("stock", GREY, "stock DSPy"), ("ours", BLUE, "dspy_reflex")):
            curves = [[(point[unit], point["score"]) for point in one[side]["curve"]] for one in seeds]
            for curve in curves:
                axes.step(*zip(*_rising(curve), strict=True), where="post", color=colour, alpha=0.35, linewidth=0.8)
            line = middle_curve(curves)
            axes.step(*zip(*line, strict=True), where="post", color=colour, linewidth=2.2, label=name)
        axes.set(xlabel=f"{unit}, as the server counted them", xlim=(0, None))
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("best score on val so far")
    figure.axes[0].legend(loc="lower right", fontsize="small")
    return figure


def middle_curve(curves: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The median of the best scores so far, from where half of the curves have one."""
    places = sorted({place for curve in curves for place, _ in curve})
    best = [[max((score for at, score in curve if at <= place), default=-inf) for curve in curves] for place in places]
    points = [(place, median(scores)) for place, scores in zip(places, best, strict=True)]
    return [point for point in points if isfinite(point[1])]


def render(result: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    ratio, whole = result["ratio"], result["whole_ratio"]
    parts = [
        "# What a compile costs, against stock DSPy",
        f"MIPROv2 for root causes on datasets/failures, {_sizes(result['sizes'])}, both sides; seeds "
        f"{', '.join(str(one['seed']) for one in result['seeds'])}. The model is the offline learner behind HTTP, which "
        "counts what it is asked. Stock DSPy has its own cache on. Scores are balanced accuracy on the 72 rows of val, "
        "so one row more is 0.014.",
        f"To reach stock DSPy's final score, our compile took {_share(ratio['calls'])} of its calls and "
        f"{_share(ratio['tokens'])} of its tokens (medians; the goal is {GOAL:.0%}). It never got there with "
        f"{result['never_reached']} of {len(result['seeds'])} seeds, which count as infinite. Both searches run to their "
        f"end: ours took {_share(whole['calls'])} of the calls and {_share(whole['tokens'])} of the tokens.",
        "![best score so far over calls and tokens](curve.png)",
        _costs(result["seeds"]),
    ]
    if "test" in result:
        parts += ["## On test, which neither has seen", _about_test(result["test"]), _tests(result["test"])]
    return "\n\n".join(parts) + "\n"


def _seed(seed: int, theirs: Outcome, own: Outcome) -> dict[str, Any]:
    mark = reached(own, theirs.final.score)
    return {
        "seed": seed,
        "stock": _told(theirs),
        "ours": _told(own),
        "reached": mark and {"calls": mark.spent.calls, "tokens": mark.spent.tokens},
        "ratio": {unit: mark and round(getattr(mark.spent, unit) / getattr(theirs.spent, unit), 3) for unit in UNITS},
        "whole_ratio": {unit: round(getattr(own.spent, unit) / getattr(theirs.spent, unit), 3) for unit in UNITS},
    }


def _told(outcome: Outcome) -> dict[str, Any]:
    curve = [
        {"calls": one.spent.calls, "tokens": one.spent.tokens, "score": round(one.score, 4)} for one in outcome.scored
    ]
    return {
        "score": round(outcome.final.score, 4),
        "macro_f1": round(outcome.final.macro_f1, 4),
        "calls": outcome.spent.calls,
        "tokens": outcome.spent.tokens,
        "curve": curve,
    }


def _rising(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(place, max(score for at, score in curve if at <= place)) for place, _ in curve]


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in sizes.items())


def _share(ratio: float | None) -> str:
    return "more than all" if ratio is None else f"{ratio:.0%}"


def _costs(seeds: Sequence[Mapping[str, Any]]) -> str:
    head = ("seed", "stock: val", "calls", "tokens, M", "ours: val", "calls", "tokens, M", "reached at call", "of calls",
            "of tokens")  # fmt: skip
    return table(head, ([str(one["seed"]), *_side(one["stock"]), *_side(one["ours"]), *_reached(one)] for one in seeds))


def _side(told: Mapping[str, Any]) -> list[str]:
    return [f"{told['score']:.3f}", str(told["calls"]), f"{told['tokens'] / 1e6:.1f}"]


def _reached(one: Mapping[str, Any]) -> list[str]:
    if not one["reached"]:
        return ["never", "", ""]
    return [str(one["reached"]["calls"]), *(f"{one['ratio'][unit]:.2f}" for unit in UNITS)]


def _about_test(test: Mapping[str, Any]) -> str:
    low, high = test["ours_minus_stock"]
    return (
        f"Macro-F1 of the final programs on {test['rows']} rows, mean over the seeds: stock DSPy {test['stock']:.3f}, ours "
        f"{test['ours']:.3f}. Ours minus stock DSPy's over all answers: 95 % interval {low:+.3f} to {high:+.3f}."
    )


def _tests(test: Mapping[str, Any]) -> str:
    def cell(score: Mapping[str, Any]) -> str:
        low, high = score["interval"]
        return f"{score['macro_f1']:.3f} ({low:.3f}, {high:.3f})"

    lines = ([str(one["seed"]), cell(one["stock"]), cell(one["ours"])] for one in test["seeds"])
    return table(("seed", "stock DSPy", "ours"), lines)


def _rounded(bounds: tuple[float, float]) -> list[float]:
    return [round(bound, 4) for bound in bounds]


if __name__ == "__main__":
    main()
