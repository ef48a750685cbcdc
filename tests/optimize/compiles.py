"""Small labelled sets and quick compiles for the tests of the compile wing and of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.optimize.options import CompileOptions, CompileResult
from dspy_reflex.taxonomies.load import load_taxonomy

ROOT = Path(__file__).parents[2]
FAILURES = ROOT / "datasets" / "failures"
QUICKLY: dict[str, int] = {
    **{"max_demos": 6, "trials": 3, "candidates": 3},
    **{"breadth": 2, "depth": 2},
    **{"batch_size": 10, "samples": 3, "steps": 3},
    **{"max_metric_calls": 60, "minibatch": 6},
}
ANY_OPTION = {each.name for one in OPTIMIZERS.values() for each in fields(one.options)}
ON_THEIR_OWN = ("copro", "simba", "gepa", "infer_rules", "knn_few_shot")
"""Optimizers whose compiles are tested in files of their own."""
CORE = tuple(name for name in OPTIMIZERS if name not in ON_THEIR_OWN)
"""The optimizers that every test of a whole compile is repeated for."""
PROGRAMS = ("root_cause", "rule")
TRAIN, VAL, TEST = 5, 3, 4
"""Rows a cause of the small set's splits."""
LAST_CLEAN = "fail-0072"

FRUIT = """\
name = "fruit"
guide = "Ask what a customer would complain about."

[[cause]]
name = "unripe"
definition = "It was picked too early."
remedy = "Wait until it is soft."

[[cause]]
name = "rotten"
definition = "It was kept too long."
remedy = "Sell the oldest first."

[[cause]]
name = "bruised"
definition = "It was handled badly."
remedy = "Handle with care."
"""
TEN = [
    ("unripe", "The pears were hard and green, the customer sent them back."),
    ("unripe", "Sour plums; they were green on the inside."),
    ("unripe", "A mango as hard as a stone, green all over."),
    ("unripe", "Bananas green and hard, nobody could eat them."),
    ("rotten", "The peaches smelled and were brown and mouldy below."),
    ("rotten", "Mouldy berries, brown juice, a bad smell."),
    ("rotten", "Brown apples with mould around the stalk."),
    ("bruised", "The box had been dropped, dents on every pear."),
    ("bruised", "Squeezed figs, juice on the box, dents."),
    ("bruised", "Dents in all tomatoes, the crate was dropped."),
]


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """A JSON Lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@cache
def rows_by_cause() -> dict[str, list[dict[str, Any]]]:
    """Cleanly written rows of `datasets/failures` to learn from or to choose on, without families; six equal classes.

    Later editions are hard: a dozen of their rows teach nothing.
    """
    lines = [line for name in ("train", "val") for line in (FAILURES / f"{name}.jsonl").read_text().splitlines()]
    rows = sorted(map(json.loads, lines), key=lambda row: row["id"])
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["id"] <= LAST_CLEAN:
            found.setdefault(row["root_cause"], []).append({k: v for k, v in row.items() if k != "family"})
    return found


def take(start: int, stop: int) -> list[dict[str, Any]]:
    """Some rows of each cause, causes in turn."""
    return [row for rows in zip(*(rows[start:stop] for rows in rows_by_cause().values()), strict=True) for row in rows]


def small_set(folder: Path) -> Path:
    """A folder with a train, a val and a test split; none of them is the test split of `datasets/failures`."""
    write_rows(folder / "train.jsonl", take(0, TRAIN))
    write_rows(folder / "val.jsonl", take(TRAIN, TRAIN + VAL))
    write_rows(folder / "test.jsonl", take(TRAIN + VAL, TRAIN + VAL + TEST))
    return folder


def mid_set(folder: Path) -> Path:
    """All of val of `datasets/failures`, and 150 rows of train, six equal classes."""
    for name, number in (("train", 25), ("val", 12)):
        lines = (FAILURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in map(json.loads, lines):
            rows.setdefault(row["root_cause"], []).append(row)
        write_rows(folder / f"{name}.jsonl", [row for some in rows.values() for row in some[:number]])
    return folder


def ten_rows(folder: Path) -> tuple[Path, Path]:
    """A taxonomy of the user's own and ten rows labelled in it."""
    taxonomy = folder / "fruit.toml"
    taxonomy.write_text(FRUIT, encoding="utf-8")
    rows = [
        {"id": f"t{number}", "task": f"Deliver order {number}.", "actual_outcome": text, "root_cause": cause}
        for number, (cause, text) in enumerate(TEN)
    ]
    return taxonomy, write_rows(folder / "ten.jsonl", rows)


def files_below(folder: Path) -> list[str]:
    """Every file, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def quick(
    place: Path, dataset: Path | Iterable[Path], program: str = "root_cause", *, taxonomy: str = "six", **options: Any
) -> CompileResult:
    """Compile below `place` (`out` and `run`), quickly unless told otherwise."""
    datasets = (dataset,) if isinstance(dataset, Path) else tuple(dataset)
    return run_compile(quickly(program, datasets, taxonomy=taxonomy, **options), out=place / "out", run=place / "run")


def quickly(program: str, datasets: tuple[Path, ...], *, taxonomy: str = "six", **options: Any) -> CompileOptions:
    """Options of a compile of few rows; `max_demos` and `trials` are given to the optimizers that take them."""
    name = options.pop("optimizer", "bootstrap_few_shot")
    taken = {each.name for each in fields(OPTIMIZERS[name].options)} if name in OPTIMIZERS else set[str]()
    settings = {option: value for option, value in QUICKLY.items() if option in taken}
    settings |= {option: options.pop(option) for option in [*options] if option in ANY_OPTION}
    return CompileOptions(program, datasets, load_taxonomy(taxonomy), name, settings, **options)


def labelled(path: Path, split: str, taxonomy: str = "six") -> tuple[LabelledFailure, ...]:
    """The rows of one split."""
    return load_evalset(path, load_taxonomy(taxonomy)).split(split)
