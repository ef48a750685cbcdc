"""Which rows a program was made with: they are no test, and the baselines beside it learn from the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dspy_reflex.errors import BenchmarkError, DatasetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import Artifact


def compiled_on(artifact: Artifact) -> frozenset[str]:
    """The hashes of the rows that a program learnt from or was chosen on."""
    return frozenset(_hashes(artifact, "train")) | frozenset(_hashes(artifact, "val"))


def count_seen(name: str, known: frozenset[str], rows: Sequence[LabelledFailure], *, allow_seen: bool) -> int:
    """How many of the rows a contender has seen.

    Raises:
        BenchmarkError: It has seen some, and that is not allowed.
    """
    seen = [row for row in rows if row.row_hash in known]
    if seen and not allow_seen:
        raise BenchmarkError(
            f"{name} was made with {len(seen)} of these {len(rows)} rows (first: {seen[0].where or seen[0].id}); "
            "benchmark another split, or mark the score with --allow-seen"
        )
    return len(seen)


def find_trainset(artifact: Artifact, candidates: Iterable[Path], taxonomy: Taxonomy) -> tuple[LabelledFailure, ...]:
    """The rows that a program was trained on, from the first data set that has all of them.

    A candidate that is missing or that cannot be read with this taxonomy is passed over.

    Raises:
        BenchmarkError: No candidate has them all.
    """
    wanted = _hashes(artifact, "train")
    if not wanted:
        raise BenchmarkError(f"{artifact.name} was trained on no rows; name the baselines' rows with --trainset")
    places = list(candidates)
    for place in places:
        found = {row.row_hash: row for row in _rows(place, taxonomy)}
        if found.keys() >= set(wanted):
            return tuple(found[name] for name in dict.fromkeys(wanted))
    looked = ", ".join(str(place) for place in places) or "nowhere"
    raise BenchmarkError(
        f"the {len(wanted)} rows that {artifact.name} was trained on are not in {looked}; "
        "name their file or folder with --trainset, or leave the baselines out"
    )


def _rows(place: Path, taxonomy: Taxonomy) -> tuple[LabelledFailure, ...]:
    try:
        return load_evalset(place, taxonomy).rows
    except DatasetError:
        return ()


def _hashes(artifact: Artifact, part: str) -> list[str]:
    hashes: Mapping[str, list[str]] = artifact.data["data"] or {}
    return hashes.get(part) or []
