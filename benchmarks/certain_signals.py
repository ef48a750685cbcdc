"""Whether anything that a pattern can see makes a root cause certain enough to leave the program out of it.

    python -m benchmarks.certain_signals

A rule that answers before the program would have to be right in 98 % of at least 30 labelled failures. Looked at on train
and val: every symptom of the table, every one of its patterns in outcome, context or task, and every run of one to three
words in each field. Nothing that is fitted here is scored here: this asks only whether there is a candidate at all.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dspy_reflex.mechanism.symptom import default_table
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.program import symptom_of_failure

ROOT = Path(__file__).parents[1]
LEAST_ROWS, LEAST_PRECISION = 30, 0.98
SHOWN = 5
_WORD = re.compile(r"[a-z_]+|\d+")


class Signal(NamedTuple):
    """Something that was seen, and the cause that most of its failures have."""

    precision: float
    rows: int
    cause: str
    kind: str
    name: str


def main() -> None:
    """Look, and tell."""
    rows = _rows()
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        for seen in set(_seen(row)):
            counts.setdefault(seen, Counter())[row["root_cause"]] += 1
    signals = [
        Signal(n.most_common(1)[0][1] / n.total(), n.total(), n.most_common(1)[0][0], *of) for of, n in counts.items()
    ]
    enough = sorted((one for one in signals if one.rows >= LEAST_ROWS), reverse=True)
    certain = [one for one in enough if one.precision >= LEAST_PRECISION]
    print(f"{len(rows)} labelled failures; {len(enough)} signals seen in at least {LEAST_ROWS} of them")
    print(f"{len(certain)} of them with a precision of {LEAST_PRECISION:.0%} or more")
    for kind in ("symptom", "pattern", "words"):
        for one in [signal for signal in enough if signal.kind == kind][:SHOWN]:
            print(f"  {one.kind:<8} {one.precision:5.1%} of {one.rows:<4} {one.cause:<22} {one.name[:60]}")


def _rows() -> list[dict[str, Any]]:
    files = (ROOT / "datasets" / "failures" / f"{split}.jsonl" for split in ("train", "val"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def _seen(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "symptom", symptom_of_failure(row)
    for field, text in cause_inputs(row).items():
        for entry in default_table():
            yield from (("pattern", f"{field}: {one.pattern}") for one in entry.patterns if one.search(text))
        words = _WORD.findall(text.lower())
        for n in (1, 2, 3):
            yield from (("words", f"{field}: {' '.join(words[i : i + n])}") for i in range(len(words) - n + 1))


if __name__ == "__main__":
    main()
