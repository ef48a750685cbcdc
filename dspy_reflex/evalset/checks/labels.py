"""Labels where they do not belong: in the text, or missing from the set."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files

from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.labelled import UNLABELLED_SPLITS, EvalSet

MOST_TO_LEAST = 1.5
"""How many times as many rows the most frequent label may have as the least frequent one in a split."""


def named_in_text(evalset: EvalSet) -> Iterator[Finding]:
    """A label's name in the text that a program sees gives the answer away, or is what a logger wrote."""
    table = _giveaways()
    names = {label: [label, label.replace("_", " "), *table.get(label, [])] for label in evalset.taxonomy.labels}
    patterns = {
        label: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, found))})(?!\w)", re.IGNORECASE)
        for label, found in names.items()
    }
    for rows in evalset.splits.values():
        for row in rows:
            text = "\n".join(row.inputs.values())
            for label, pattern in patterns.items():
                for word in sorted({match.group().lower() for match in pattern.finditer(text)}):
                    yield Finding(
                        "label-in-text",
                        "warning",
                        row.where,
                        f"the text contains {word!r}, which says {label}; it may be a leak, it may be a log",
                    )


def absent(evalset: EvalSet) -> Iterator[Finding]:
    """Labels that no row has."""
    present = {row.root_cause for row in evalset.rows}
    missing = [label for label in evalset.taxonomy.labels if label not in present]
    if missing:
        yield Finding(
            "label-absent",
            "warning",
            evalset.name,
            f"no row is {', '.join(missing)}; the label set stays whole, so a program may answer it",
        )


def unbalanced(evalset: EvalSet) -> Iterator[Finding]:
    """Splits in which some labels are much more frequent than others."""
    for split, rows in evalset.splits.items():
        counts = Counter(row.root_cause for row in rows if row.root_cause)
        if split in UNLABELLED_SPLITS or not counts:
            continue
        (most, many), (least, few) = counts.most_common(1)[0], counts.most_common()[-1]
        if many > MOST_TO_LEAST * few:
            yield Finding(
                "class-counts",
                "warning",
                f"{evalset.name}/{split}",
                f"{many} rows are {most}, {few} are {least}; a program that guesses {most} looks good here",
            )


def _giveaways() -> dict[str, list[str]]:
    table = files("dspy_reflex.evalset.checks") / "giveaways.toml"
    return tomllib.loads(table.read_text(encoding="utf-8"))
