"""What a reader gets who sees the text alone: votes against the labels of a split of our own failures.

    python benchmarks/reader.py VOTES.jsonl [--split test_hard] [--out FOLDER]

VOTES has {"id", "root_cause", "second"} a line; a root cause of null is an answer, too: that nothing can be blamed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark import statistics
from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.files import write_atomic
from dspy_reflex.taxonomies.load import load_taxonomy

OWN = Path("datasets/failures")


def main() -> None:
    """Score the votes, write `result.json`, and print it."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("votes", type=Path)
    made.add_argument("--split", default="test_hard")
    made.add_argument("--out", type=Path, default=Path("experiments/reader-test_hard"))
    options = made.parse_args()
    result = scored(options.votes, options.split)
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result))


def scored(votes: Path, split: str) -> dict[str, Any]:
    """Accuracy and macro-F1 with 95 % intervals over families, and how often the label is first or second choice."""
    rows = load_evalset(OWN, load_taxonomy()).split(split)
    said = {vote["id"]: vote for vote in map(json.loads, votes.read_text().splitlines())}
    if missing := [row.id for row in rows if row.id not in said]:
        raise DatasetError(f"{votes}: no vote on {len(missing)} rows of {split}, such as {missing[0]}")
    gold, units = [str(row.root_cause) for row in rows], [row.unit for row in rows]
    answers = [said[row.id]["root_cause"] for row in rows]
    right = [float(one == other) for one, other in zip(gold, answers, strict=True)]
    either = [said[row.id]["second"] == row.root_cause for row in rows]
    return {
        "split": split,
        "n": len(rows),
        "accuracy": sum(right) / len(right),
        "interval": statistics.mean_interval(right, units),
        "macro_f1": statistics.macro_f1(gold, answers),
        "macro_f1_interval": statistics.interval(gold, answers, units),
        "first_or_second": sum(one or bool(other) for one, other in zip(either, right, strict=True)) / len(rows),
    }


if __name__ == "__main__":
    main()
