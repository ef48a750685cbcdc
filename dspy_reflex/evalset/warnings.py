"""What a data set's owner should know although it can be used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure


def warnings_for(evalset: EvalSet) -> list[str]:
    """One sentence for each oddity: absent classes, label names in a text, units and texts in two splits."""
    return [*_absent(evalset), *_named(evalset), *_shared(evalset)]


def _absent(evalset: EvalSet) -> Iterator[str]:
    present = {row.root_cause for row in evalset.rows}
    missing = [label for label in evalset.taxonomy.labels if label not in present]
    if missing:
        yield f"{evalset.name}: no row is {', '.join(missing)}; the label set stays whole, so a program may answer it"


def _named(evalset: EvalSet) -> Iterator[str]:
    """A label's name in the text that a program sees gives the answer away, or is what a logger wrote."""
    names = "|".join(re.escape(label) for label in sorted(evalset.taxonomy.labels, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)
    for rows in evalset.splits.values():
        for row in rows:
            found = {match.group().lower() for text in row.inputs.values() for match in pattern.finditer(text)}
            for name in sorted(found):
                yield f"{row.where}: the text contains the label {name!r}; it may be a leak, it may be a log"


def _shared(evalset: EvalSet) -> Iterator[str]:
    """What occurs in two splits lets a program be tested on what it was trained on."""
    by_unit: dict[str, dict[str, LabelledFailure]] = defaultdict(dict)
    by_text: dict[str, dict[str, LabelledFailure]] = defaultdict(dict)
    for split, rows in evalset.splits.items():
        for row in rows:
            by_unit[row.unit].setdefault(split, row)
            by_text[row.row_hash].setdefault(split, row)
    for places in by_text.values():
        if len(places) > 1:
            yield f"the same failure is in {' and '.join(row.where for row in places.values())}; keep one of them"
    for unit, places in by_unit.items():
        if len(places) > 1 and unit not in by_text:
            yield f"{unit!r} is in the splits {' and '.join(places)}; keep a family or group in one split"
