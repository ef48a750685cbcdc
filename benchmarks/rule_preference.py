"""Which rule would a reader rather have: the compiled program's, or the fixed rule of the cause? Blind, in pairs.

    python benchmarks/rule_preference.py ask --out FOLDER     writes pairs.jsonl for a reader, and key.json, which says
                                                              whose rule is which and is not for the reader
    python benchmarks/rule_preference.py count --out FOLDER   reads votes.jsonl, {"id", "better": "a" | "b" | "equal"} a
                                                              line, and writes result.json

Half of the pairs are from test and half from test_hard; which rule stands first is drawn.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from dspy_reflex.benchmark.baselines.rule import FixedRule
from dspy_reflex.benchmark.predict import Contender, rule_answers
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.files import write_atomic
from dspy_reflex.runtime.library import find
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy

OWN = Path("datasets/failures")
SPLITS = ("test", "test_hard")
PAIRS = 60
SEED = 0


def main() -> None:
    """Write the questions, or count the answers and print the result as JSON."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=["ask", "count"])
    made.add_argument("--out", type=Path, default=Path("experiments/rule-preference"))
    options = made.parse_args()
    print(json.dumps(ask(options.out) if options.what == "ask" else count(options.out)))


def ask(out: Path) -> dict[str, Any]:
    """Draw failures, let both propose, and write the pairs and the key apart."""
    rng = random.Random(SEED)
    evalset = load_evalset(OWN, load_taxonomy())
    rows = [row for name in SPLITS for row in rng.sample(evalset.split(name), PAIRS // len(SPLITS))]
    model = connect("offline")
    artifact = find("rule", model.name)
    proposed = rule_answers(Contender(artifact.name, "program", artifact, model), rows, 1, lambda: None)
    fixed = FixedRule()
    fixed.fit(evalset.split("train"))
    pairs: list[dict[str, Any]] = []
    key: dict[str, str] = {}
    for row, answer in zip(rows, proposed, strict=True):
        first = rng.choice(("program", "fixed"))
        texts = {"program": answer.rule, "fixed": fixed.predict(row).rule}
        second = "fixed" if first == "program" else "program"
        pairs.append(_pair(row, texts[first], texts[second]))
        key[row.id] = "a" if first == "program" else "b"
    write_atomic(out / "pairs.jsonl", "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs).encode())
    write_atomic(out / "key.json", (json.dumps({"program": artifact.name, "is": key}, indent=1) + "\n").encode())
    return {"pairs": len(pairs), "program": artifact.name}


def _pair(row: LabelledFailure, a: str, b: str) -> dict[str, Any]:
    return {"id": row.id, "failure": row.inputs, "root_cause": row.root_cause, "a": a, "b": b}


def count(out: Path) -> dict[str, Any]:
    """How often the program's rule was the better one, with a 95 % Wilson interval; a tie counts for neither."""
    key = json.loads((out / "key.json").read_text())
    votes = [json.loads(line) for line in (out / "votes.jsonl").read_text().splitlines()]
    found = Counter(
        "equal" if vote["better"] == "equal" else "program" if vote["better"] == key["is"][vote["id"]] else "fixed"
        for vote in votes
    )
    decided = found["program"] + found["fixed"]
    interval = binomtest(found["program"], decided).proportion_ci(0.95, "wilson")
    result = {
        "program": key["program"],
        "n": len(votes),
        "preferred": {name: found[name] for name in ("program", "fixed", "equal")},
        "share": found["program"] / decided,
        "interval": [float(interval.low), float(interval.high)],
    }
    write_atomic(out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    return result


if __name__ == "__main__":
    main()
