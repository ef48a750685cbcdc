"""Rows on their way into files, counted."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dspy_reflex.finetune.card import Contents
from dspy_reflex.finetune.formats.base import Format, Said, UnfitError, check
from dspy_reflex.finetune.row import Row
from dspy_reflex.finetune.sink import Nowhere, Sink, sink_for

LINEAGE = "lineage.jsonl"
CHARS_PER_TOKEN = 4
"""Of English text, about; a trainer's own tokenizer counts otherwise."""
OTHERS = "rows that the other export has"

Ids = frozenset[int]
"""Of rows, as numbers: a million take a tenth of a gigabyte."""
NONE: Ids = frozenset()


class Book:
    """Writes each row and its lineage, if the format has words for it, and counts."""

    def __init__(self, form: Format, folder: Path | None, licence: str, but: Ids = NONE, before: Ids = NONE) -> None:
        """Begin.

        Args:
            form: The format.
            folder: Where files go; None only counts.
            licence: Of the rows.
            but: Rows to leave out.
            before: Rows that were there before, to say what is new.
        """
        self._form, self._folder, self._licence = form, folder, licence
        self._but, self._before = but, before
        self.left_out: Counter[str] = Counter()
        self.rules: set[str] = set()
        """Proposals that are taught."""
        self._files: dict[str, _File] = {}
        self._tasks: Counter[str] = Counter()
        self._kept = 0
        self._lineage = self._sink(LINEAGE)

    def enter(self, row: Row) -> None:
        """Write one row."""
        shape = self._form.shapes.get(row.kind)
        if shape is None:
            self.left_out[f"rows of the kind {row.kind}, which {self._form.name} has no words for"] += 1
        elif row.number in self._but:
            self.left_out[OTHERS] += 1
        else:
            said = Said(row.prompt, row.answer, row.rejected, row.label)
            try:
                check(said)
                written = shape.write(said)
            except UnfitError as error:
                self.left_out[f"rows that do not fit: {error}"] += 1
            else:
                self._put(row, written)

    def close(self) -> None:
        """Write what is left."""
        for sink in (*(file.sink for file in self._files.values()), self._lineage):
            sink.close()

    @property
    def added_and_gone(self) -> tuple[int, int]:
        """Rows that were not there before, and rows that are there no more."""
        written = sum(len(file.tokens) for file in self._files.values())
        return written - self._kept, len(self._before) - self._kept

    def contents(
        self, left_out: Mapping[str, int], redacted: Mapping[str, int], withdrawn: tuple[str, ...]
    ) -> Contents:
        """What came of it."""
        why = Counter(left_out) + self.left_out
        rows = {place: len(file.tokens) for place, file in self._files.items()}
        return Contents(
            _sorted(rows), _sorted(self._tasks), _sorted(why), _sorted(redacted), self._spreads(), withdrawn
        )

    def _put(self, row: Row, written: Mapping[str, Any]) -> None:
        file = self._file(f"{row.kind}/{row.split}")
        file.sink.put(written)
        file.tokens.append(_chars(row) // CHARS_PER_TOKEN)
        self._lineage.put({
            "id": row.id, "kind": row.kind, "split": row.split, "line": len(file.tokens), "task": row.task,
            "licence": self._licence, "lineage": row.lineage,
        })  # fmt: skip
        self._tasks[row.task] += 1
        self._kept += row.number in self._before
        self.rules.update(row.lineage.proposals[:1])

    def _spreads(self) -> dict[str, dict[str, int]]:
        tokens: dict[str, array[int]] = {}
        for place, file in sorted(self._files.items()):
            tokens.setdefault(place.partition("/")[0], array("Q")).extend(file.tokens)
        return {kind: _spread(counts) for kind, counts in tokens.items()}

    def _file(self, place: str) -> _File:
        if place not in self._files:
            self._files[place] = _File(self._sink(f"data/{place}.{self._form.suffix}"))
        return self._files[place]

    def _sink(self, name: str) -> Sink:
        return sink_for(self._folder / name) if self._folder else Nowhere()


@dataclass(frozen=True)
class _File:
    """Rows of one kind and split, with how many tokens each has."""

    sink: Sink
    tokens: array[int] = field(default_factory=lambda: array("Q"))


def warnings(form: Format, told: Contents) -> Iterator[str]:
    """Where an export is not within a target's limits."""
    limits = form.limits
    for kind, spread in told.tokens.items():
        n = told.rows.get(f"{kind}/train", 0)
        if limits.min_rows and n < limits.min_rows:
            yield f"{form.name} wants at least {limits.min_rows} rows to train on; {kind} has {n}"
        if limits.max_rows and n > limits.max_rows:
            yield f"{form.name} takes at most {limits.max_rows:,} rows to train on; {kind} has {n:,}"
        if limits.max_tokens and spread["most"] > limits.max_tokens:
            yield f"{form.name} takes at most {limits.max_tokens:,} tokens a row; {kind} has one of {spread['most']:,}"


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {one: n for one, n in sorted(counts.items()) if n}


def _chars(row: Row) -> int:
    chars = 0
    for turn in (*row.prompt, *row.answer, *row.rejected):
        chars += len(turn.content)
    return chars


def _spread(counts: array[int]) -> dict[str, int]:
    inorder = sorted(counts)
    last = len(inorder) - 1
    places = {"least": 0, "median": last // 2, "p95": last * 95 // 100, "most": last}
    return {**{name: inorder[place] for name, place in places.items()}, "total": sum(inorder)}
