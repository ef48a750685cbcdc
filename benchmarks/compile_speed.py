"""How long does a compile take, against stock DSPy's MIPROv2, with a model that takes its time? Goal: 0.6 of its time.

    python -m benchmarks.compile_speed         writes experiments/compile-speed, in about five minutes

Same rows, sizes, seed and threads on both sides. Each compiles once without latency first, which is not counted: by then
the server knows its answers, and what is timed afterwards is waiting and the clients' own work. How many answers came
later than they should is counted, and told.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.model_server import serving
from benchmarks.rivals import SIZES, Outcome, Task, ours, rows_of, stock
from dspy_reflex.benchmark.markdown import table
from dspy_reflex.benchmark.pictures import blank, png
from dspy_reflex.files import write_atomic

OUT = Path("experiments/compile-speed")
LATENCY_S, THREADS, RUNS, SEED = 0.2, 8, 3, 0
GOAL = 0.6
PHASES = {"measure": "#bbbbbb", "bootstrap": "#f58518", "propose": "#54a24b", "evaluate": "#4c78a8"}
"""In the order of the picture's bars, with colours."""
SIDES = {"stock": stock, "ours": ours}
NAMES = {"stock": "stock DSPy", "ours": "dspy_reflex"}


def main() -> None:
    """Compile, take the time and write."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--runs", type=int, default=RUNS, help=f"timed compiles of each side (default {RUNS})")
    made.add_argument("--out", type=Path, default=OUT, help=f"folder for the outcome (default: {OUT})")
    options = made.parse_args()
    result = timed(options.runs)
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", render(result).encode())
    write_atomic(options.out / "phases.png", png(picture(result)))
    print(render(result))


def timed(runs: int) -> dict[str, Any]:
    """Medians over some compiles of each side, in turns so that a busy moment of the machine hits both alike."""
    train, val = rows_of("train", "val")
    task = Task(train, val, SEED, THREADS)
    found: dict[str, list[Outcome]] = {side: [] for side in SIDES}
    with serving() as server:
        for side, compile_ in SIDES.items():
            compile_(task, server, f"{side}-warm")
        for run in range(runs):
            for side, compile_ in SIDES.items():
                found[side].append(compile_(task, server, f"{side}-{run}", LATENCY_S))
    told = {side: _told(outcomes) for side, outcomes in found.items()}
    return {
        "benchmark": "compile_speed",
        "goal": GOAL,
        "latency_s": LATENCY_S,
        "threads": THREADS,
        "runs": runs,
        "seed": SEED,
        "sizes": SIZES,
        "ratio": round(told["ours"]["seconds"] / told["stock"]["seconds"], 3),
        **told,
    }


def picture(result: Mapping[str, Any]) -> Any:
    """A bar for each side, its phases side by side."""
    figure = blank(7.5, 2.4)
    axes = figure.subplots()
    for place, side in enumerate(reversed(SIDES)):
        left = 0.0
        for phase, colour in PHASES.items():
            width = result[side]["phases"][phase]
            axes.barh(place, width, left=left, color=colour, label=phase if place == 0 else None)
            left += width
    axes.set_yticks(range(len(SIDES)), [NAMES[side] for side in reversed(SIDES)])
    axes.set_xlabel(f"seconds, {result['threads']} threads, {result['latency_s'] * 1000:.0f} ms an answer")
    axes.legend(fontsize="small", ncols=len(PHASES), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return figure


def render(result: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    late = sum(result[side]["late"] for side in SIDES)
    parts = [
        "# How long a compile takes, against stock DSPy",
        f"MIPROv2 for root causes on datasets/failures with seed {result['seed']}, {result['threads']} threads and "
        f"{result['latency_s'] * 1000:.0f} ms an answer, medians of {result['runs']} runs. The model is the offline learner "
        f"behind HTTP, which knows its answers by then; {late} of them came later than they should.",
        f"Ours took {result['ratio']:.2f} of the time of stock DSPy; the goal is {GOAL:.2f}.",
        "![seconds by phase](phases.png)",
        table(
            ("", "seconds", *PHASES, "calls", "calls a second", "val: balanced accuracy", "val: macro-F1"),
            ([NAMES[side], *_line(result[side])] for side in SIDES),
        ),
        "Stock DSPy scores the uncompiled program while it evaluates, ours before and apart from it (`measure`). `propose` is "
        "what is left of the time: the data summary, the instructions and everything else.",
    ]
    return "\n\n".join(parts) + "\n"


def _told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    last = outcomes[-1]
    return {
        "seconds": round(median(one.seconds for one in outcomes), 2),
        "all_seconds": [round(one.seconds, 2) for one in outcomes],
        "phases": {phase: round(median(one.phases.get(phase, 0.0) for one in outcomes), 2) for phase in PHASES},
        "calls": last.spent.calls,
        "late": sum(one.spent.late for one in outcomes),
        "score": round(last.final.score, 4),
        "macro_f1": round(last.final.macro_f1, 4),
    }


def _line(told: Mapping[str, Any]) -> list[str]:
    seconds = [told["seconds"], *told["phases"].values()]
    return [
        *(f"{each:.1f}" for each in seconds),
        str(told["calls"]),
        f"{told['calls'] / told['seconds']:.1f}",
        f"{told['score']:.3f}",
        f"{told['macro_f1']:.3f}",
    ]


if __name__ == "__main__":
    main()
