"""How long does a compile take, against stock DSPy's MIPROv2, with a model that takes its time? Goal: 0.6 of its time.

    python -m benchmarks.compile_speed         writes experiments/compile-speed, in about eight minutes

Same rows, sizes and threads on both sides, the seeds of `benchmarks.compile_cost`. Each compiles once without latency
first, which is not counted: by then the server knows its answers, and what is timed afterwards is waiting and the
clients' own work. How many answers came later than they should is counted, and told.
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
SEEDS = (0, 1, 2, 3, 4)
LATENCY_S, THREADS = 0.2, 8
GOAL = 0.6
PHASES = {"measure": "#bbbbbb", "bootstrap": "#f58518", "propose": "#54a24b", "evaluate": "#4c78a8"}
"""In the order of the picture's bars, with colours."""
SIDES = {"stock": stock, "ours": ours}
NAMES = {"stock": "stock DSPy", "ours": "dspy_reflex"}


def main() -> None:
    """Compile, take the time and write."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="seeds of the compiles (default: 0 to 4)")
    made.add_argument("--out", type=Path, default=OUT, help=f"folder for the outcome (default: {OUT})")
    options = made.parse_args()
    result = timed(options.seeds)
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", render(result).encode())
    write_atomic(options.out / "phases.png", png(picture(result)))
    print(render(result))


def timed(seeds: Sequence[int]) -> dict[str, Any]:
    """Medians over seeds; both sides in turns, so that a busy moment of the machine hits both alike."""
    train, val = rows_of("train", "val")
    found: dict[str, list[Outcome]] = {side: [] for side in SIDES}
    with serving() as server:
        for seed in seeds:
            task = Task(train, val, seed, THREADS)
            for side, compile_ in SIDES.items():
                compile_(task, server, f"{side}-{seed}-warm")
                found[side].append(compile_(task, server, f"{side}-{seed}", LATENCY_S))
    ratios = [round(mine.seconds / theirs.seconds, 3) for theirs, mine in zip(*found.values(), strict=True)]
    return {
        "benchmark": "compile_speed",
        "goal": GOAL,
        "latency_s": LATENCY_S,
        "threads": THREADS,
        "seeds": [*seeds],
        "sizes": SIZES,
        "ratios": ratios,
        "ratio": median(ratios),
        **{side: _told(outcomes) for side, outcomes in found.items()},
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
        f"MIPROv2 for root causes on datasets/failures with {result['threads']} threads and "
        f"{result['latency_s'] * 1000:.0f} ms an answer, medians of {len(result['seeds'])} seeds. The model is the offline "
        f"learner behind HTTP, which knows its answers by then; {late} of them came later than they should.",
        f"Ours took {result['ratio']:.2f} of the time of stock DSPy ({min(result['ratios']):.2f} to "
        f"{max(result['ratios']):.2f}); the goal is {GOAL:.2f}.",
        "![seconds by phase](phases.png)",
        table(
            ("", "seconds", *PHASES, "calls", "calls a second", "val: balanced accuracy", "val: macro-F1"),
            ([NAMES[side], *_line(result[side])] for side in SIDES),
        ),
        "Stock DSPy scores the uncompiled program while it evaluates. Ours measures it while demos are worked out; `measure` "
        "has only the time in which nothing else was going on. `propose` is what is left: the data summary, the "
        "instructions, and whatever lies between evaluations.",
    ]
    return "\n\n".join(parts) + "\n"


def _told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "seconds": round(median(one.seconds for one in outcomes), 2),
        "all_seconds": [round(one.seconds, 2) for one in outcomes],
        "phases": {phase: round(median(one.phases.get(phase, 0.0) for one in outcomes), 2) for phase in PHASES},
        "calls": median(one.spent.calls for one in outcomes),
        "late": sum(one.spent.late for one in outcomes),
        "score": round(median(one.final.score for one in outcomes), 4),
        "macro_f1": round(median(one.final.macro_f1 for one in outcomes), 4),
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
