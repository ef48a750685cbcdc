"""How often does `dspy-reflex promote` err? Simulated programs of known accuracy, through the decision it really makes.

    python benchmarks/promotion_errors.py --out FOLDER        writes result.json, in about two minutes

Each pair answers as many failures, labels and families as the test split has. A program is right with its own
probability, else it names another label at random; two programs err independently of each other. On few units the gate
decides nothing; there it is counted how often the interval alone would have let an equal program win.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from dspy_reflex.benchmark.predict import CauseAnswer
from dspy_reflex.benchmark.promote import MARGIN, Comparison, compare_causes, decide
from dspy_reflex.files import write_atomic

LABELS = ("a", "b", "c", "d", "e", "f")
UNITS, ROWS_A_UNIT = 60, 3
FEW_UNITS = (8, 12, 20, 30)
ACCURACY = 0.6
TOKENS = 1000
PAIRS = 1000
SEED = 0


@dataclass(frozen=True)
class Truth:
    """What is true of the candidate; the current program is right with `ACCURACY` on every label."""

    gain: float = 0.0
    """Its accuracy minus that of the current program."""
    tokens: int = TOKENS
    """What an answer of it takes."""
    recall: Mapping[str, float] = field(default_factory=dict[str, float])
    """Labels on which it has another accuracy."""
    spread: float = 0.0
    """How far families fall together: standard deviation of a program's accuracy between them, below 0.4."""


TRUTHS = {
    "equal": Truth(),
    "equal, families fall together": Truth(spread=0.25),
    "worse by the margin, cheaper": Truth(gain=-MARGIN, tokens=TOKENS // 2),
    "equal, cheaper": Truth(tokens=TOKENS // 2),
    "better by 0.05": Truth(gain=0.05),
    "better by 0.10": Truth(gain=0.10),
    "better by 0.15": Truth(gain=0.15),
    "better by 0.20": Truth(gain=0.20),
    "better by 0.20, one class broken": Truth(gain=0.20, recall={"a": 0.05}),
}


def main() -> None:
    """Simulate, write the result and print it."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of programs of each kind (default {PAIRS})")
    made.add_argument("--out", type=Path, default=Path("experiments/promotion"))
    options = made.parse_args()
    result = {
        "benchmark": "promotion_errors",
        "n": UNITS * ROWS_A_UNIT, "units": UNITS, "accuracy": ACCURACY, "margin": MARGIN, "pairs": options.pairs, "seed": SEED,
        "promoted": {name: _share(promotions(truth, options.pairs)) for name, truth in TRUTHS.items()},
        "equal_above_0_on_few_units": {units: _share(above_0(units, options.pairs)) for units in FEW_UNITS},
    }  # fmt: skip
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result, indent=1))


def promotions(truth: Truth, pairs: int) -> list[bool]:
    """Whether the candidate was promoted, pair by pair."""
    rng = np.random.default_rng(SEED)
    with threadpool_limits(1):  # the matrices are small: on a busy machine, threads only wait for each other
        return [decide(_comparison(truth, UNITS, ROWS_A_UNIT, rng)).promoted for _ in range(pairs)]


def above_0(units: int, pairs: int) -> list[bool]:
    """Whether the interval of the difference of equal programs lay above 0, on as many failures as units."""
    rng = np.random.default_rng(SEED)
    with threadpool_limits(1):
        return [_comparison(Truth(), units, 1, rng).interval[0] > 0 for _ in range(pairs)]


def _comparison(truth: Truth, units: int, rows_a_unit: int, rng: np.random.Generator) -> Comparison:
    gold = [LABELS[row % len(LABELS)] for row in range(units * rows_a_unit)]
    families = np.repeat(np.arange(units), rows_a_unit)
    sides: list[list[CauseAnswer]] = []
    for gain, recall, tokens in ((truth.gain, truth.recall, truth.tokens), (0.0, {}, TOKENS)):
        accuracy = dict.fromkeys(LABELS, ACCURACY + gain) | dict(recall)
        shift = rng.choice([-truth.spread, truth.spread], units)[families]
        right = rng.random(len(gold)) < np.array([accuracy[label] for label in gold]) + shift
        sides.append([CauseAnswer(label if hit else _other(label, rng), None, tokens=tokens)
                      for label, hit in zip(gold, right, strict=True)])  # fmt: skip
    return compare_causes(gold, [str(family) for family in families], *sides)


def _other(label: str, rng: np.random.Generator) -> str:
    return LABELS[(LABELS.index(label) + int(rng.integers(1, len(LABELS)))) % len(LABELS)]


def _share(promoted: list[bool]) -> dict[str, Any]:
    found = binomtest(sum(promoted), len(promoted)).proportion_ci(0.95, "wilson")
    return {"share": sum(promoted) / len(promoted), "interval": [round(found.low, 4), round(found.high, 4)]}


if __name__ == "__main__":
    main()
