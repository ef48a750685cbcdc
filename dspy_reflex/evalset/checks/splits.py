"""What lets a program be tested on what it was trained on: units, texts and near-copies in two splits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure
from dspy_reflex.evalset.writing import MANIFEST, changed_splits

WORDS_PER_SHINGLE = 5
SIMILAR = 0.5
"""Jaccard similarity of word shingles from which on two texts are near-copies; two accounts of one scenario have less."""
PERMUTATIONS = 128
"""Of the MinHash; the estimate's standard error is about 0.05 then."""


def divided(evalset: EvalSet) -> Iterator[Finding]:
    """Families, groups and texts that are in two splits."""
    by_unit: dict[str, dict[str, LabelledFailure]] = defaultdict(dict)
    by_text: dict[str, dict[str, LabelledFailure]] = defaultdict(dict)
    for split, rows in evalset.splits.items():
        for row in rows:
            by_unit[row.unit].setdefault(split, row)
            by_text[row.row_hash].setdefault(split, row)
    for places in by_text.values():
        if len(places) > 1:
            where = [row.where for row in places.values()]
            text = f"the same failure is at {' and '.join(where[1:])}; keep one of them"
            yield Finding("family-divided", "error", where[0], text)
    for unit, places in by_unit.items():
        if len(places) > 1 and unit not in by_text:
            text = f"{unit!r} is in the splits {' and '.join(places)}; keep a family or group in one split"
            yield Finding("family-divided", "error", next(iter(places.values())).where, text)


def near_copies(evalset: EvalSet) -> Iterator[Finding]:
    """Rows whose texts are nearly the same, in one split or in two (MinHash and locality-sensitive hashing)."""
    minhash, lsh = _datasketch()
    index = lsh(threshold=SIMILAR, num_perm=PERMUTATIONS)
    kept: dict[str, tuple[str, LabelledFailure, Any]] = {}
    for split, rows in evalset.splits.items():
        for row in rows:
            sketch = minhash(num_perm=PERMUTATIONS)
            sketch.update_batch([shingle.encode() for shingle in _shingles(row)])
            for name in sorted(index.query(sketch)):
                other_split, other, other_sketch = kept[name]
                similarity = float(sketch.jaccard(other_sketch))
                if similarity >= SIMILAR:
                    apart = "" if split == other_split else f", in {other_split}"
                    text = (
                        f"nearly the same text as {other.where}{apart} (similarity {similarity:.2f}); keep one of them"
                    )
                    yield Finding("near-copy", "warning" if split == other_split else "error", row.where, text)
            key = str(len(kept))
            kept[key] = (split, row, sketch)
            index.insert(key, sketch)


def changed(folder: Path) -> Iterator[Finding]:
    """Splits that are not what the manifest says: a changed test set is another test set."""
    if folder.is_dir():
        for split in changed_splits(folder):
            text = f"{split} is not what {MANIFEST} says; a new version needs a new manifest and new scores"
            yield Finding("hash", "error", str(folder), text)


def _shingles(row: LabelledFailure) -> set[str]:
    words = re.findall(r"\w+", "\n".join(row.inputs.values()).lower())
    last = max(1, len(words) - WORDS_PER_SHINGLE + 1)
    return {" ".join(words[start : start + WORDS_PER_SHINGLE]) for start in range(last)}


def _datasketch() -> Any:
    try:
        from datasketch import MinHash, MinHashLSH  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("the search for near-copies", "compile") from None
    return MinHash, MinHashLSH
