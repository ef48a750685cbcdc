"""An export as a folder: rows by kind and split, their lineage, a card, a manifest and checksums."""

from __future__ import annotations

import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dspy_reflex.errors import ExportError
from dspy_reflex.finetune.card import card
from dspy_reflex.finetune.formats.base import Format, Said, UnfitError
from dspy_reflex.finetune.row import Kind, Row, Turn, number_of
from dspy_reflex.finetune.sink import Nowhere, Sink, sha256_of, sink_for
from dspy_reflex.redaction.redact import redact
from dspy_reflex.redaction.scan import clears

MANIFEST, LINEAGE, SUMS, CARD = "manifest.json", "lineage.jsonl", "SHA256SUMS", "README.md"
CHARS_PER_TOKEN = 4
"""Of English text, about; a trainer's own tokenizer counts otherwise."""


Ids = frozenset[int]
"""Of rows, as numbers: a million take a tenth of a gigabyte."""
NONE: Ids = frozenset()


@dataclass(frozen=True)
class Written:
    """What an export holds."""

    rows: Mapping[str, int]
    """By kind and split, as `sft/train`."""
    left_out: Mapping[str, int]
    """By reason."""
    tokens: Mapping[str, Mapping[str, int]]
    """By kind: least, median, 95th percentile, most and total, estimated from characters."""
    added: int
    """Rows that the folder did not have before."""
    gone: int
    """Rows that it had, and that nothing stands behind any more."""
    warnings: tuple[str, ...]


def write(
    rows: Iterable[Row],
    form: Format,
    out: Path,
    *,
    left_out: Counter[str],
    licence: str,
    told: Mapping[str, Any],
    but: Ids = NONE,
) -> Written:
    """Write a folder anew, as a whole or not at all; without a row nothing is written.

    Args:
        rows: In the order in which they are to stand.
        form: The format.
        out: The folder; an earlier export there is replaced.
        left_out: Reasons are added to those of the source.
        licence: What the rows may be used for.
        told: What the manifest is to say of how they were chosen.
        but: Ids of rows to leave out because another export has them.

    Raises:
        ExportError: The folder holds something else, or cannot be written.
    """
    before = ids_of(out) if out.exists() else NONE
    building = out.with_name(f".{out.name}.new")
    shutil.rmtree(building, ignore_errors=True)
    try:
        book = _Book(form, building, left_out, but, before)
        with closing(book):
            for row in rows:
                book.enter(row)
        written = book.written()
        if written.rows:
            _finish(building, form, written, licence, told)
            _swap(building, out)
    except OSError as error:
        raise ExportError(f"{out}: cannot be written: {error}; free some space or choose another --out") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return written


def tally(rows: Iterable[Row], form: Format, *, left_out: Counter[str], but: Ids = NONE) -> Written:
    """What `write` would come to, without a file."""
    book = _Book(form, None, left_out, but, NONE)
    for row in rows:
        book.enter(row)
    return book.written()


def ids_of(folder: Path) -> Ids:
    """Ids of the rows of an export.

    Raises:
        ExportError: It is none.
    """
    if not any(folder.iterdir()):
        return NONE
    try:
        with (folder / LINEAGE).open("rb") as lines:
            return frozenset(number_of(orjson.loads(line)["id"]) for line in lines)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{folder}: is there and is no export of ours; choose another --out") from error


class _Book:
    """Rows on their way into files."""

    def __init__(self, form: Format, folder: Path | None, left_out: Counter[str], but: Ids, before: Ids) -> None:
        self._form, self._folder, self._left_out = form, folder, left_out
        self._but, self._before = but, before
        self._sinks: dict[str, Sink] = {}
        self._counts: Counter[str] = Counter()
        self._tokens: dict[Kind, array[int]] = {}
        self._kept = 0
        self._lineage = self._sink(LINEAGE)

    def enter(self, row: Row) -> None:
        """Write one row, if the format has words for it."""
        shape = self._form.shapes.get(row.kind)
        if shape is None:
            self._left_out[f"rows of the kind {row.kind}, which {self._form.name} has no words for"] += 1
        elif number_of(row.id) in self._but:
            self._left_out["rows that the other export has"] += 1
        else:
            try:
                told = shape.write(_clean(row))
            except UnfitError as error:
                self._left_out[f"rows that do not fit: {error}"] += 1
            else:
                self._put(row, told)

    def _put(self, row: Row, told: Mapping[str, Any]) -> None:
        where = f"{row.kind}/{row.split}"
        if where not in self._sinks:
            self._sinks[where] = self._sink(f"data/{where}.{self._form.suffix}")
        self._sinks[where].put(told)
        place = {"id": row.id, "file": where, "line": self._counts[where], "task": row.task}
        self._lineage.put({**place, "lineage": row.lineage})
        self._counts[where] += 1
        self._kept += number_of(row.id) in self._before
        turns = (*row.prompt, *row.answer, *row.rejected)
        tokens = sum(len(turn.content) for turn in turns) // CHARS_PER_TOKEN
        self._tokens.setdefault(row.kind, array("Q")).append(tokens)

    def _sink(self, name: str) -> Sink:
        return sink_for(self._folder / name) if self._folder else Nowhere()

    def close(self) -> None:
        """Write what is left."""
        for sink in (*self._sinks.values(), self._lineage):
            sink.close()

    def written(self) -> Written:
        """What came of it."""
        tokens: dict[str, dict[str, int]] = {kind: _spread(counts) for kind, counts in self._tokens.items()}
        warnings = tuple(_warnings(self._form, self._counts, tokens))
        added, gone = sum(self._counts.values()) - self._kept, len(self._before) - self._kept
        left_out = {why: n for why, n in sorted(self._left_out.items()) if n}
        return Written(dict(sorted(self._counts.items())), left_out, tokens, added, gone, warnings)


def _clean(row: Row) -> Said:
    """What is said, redacted once more: what reviewers wrote has not been looked at before."""
    return Said(_redacted(row.prompt), _redacted(row.answer), _redacted(row.rejected), row.label)


def _redacted(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return tuple(
        one if clears(one.content.encode("utf-8", "replace")) else replace(one, content=redact(one.content)[0])
        for one in turns
    )


def _spread(counts: array[int]) -> dict[str, int]:
    inorder = sorted(counts)
    last = len(inorder) - 1
    places = {"least": 0, "median": last // 2, "p95": last * 95 // 100, "most": last}
    return {**{name: inorder[place] for name, place in places.items()}, "total": sum(inorder)}


def _warnings(form: Format, counts: Mapping[str, int], tokens: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    limits = form.limits
    for kind, spread in tokens.items():
        n = counts.get(f"{kind}/train", 0)
        if limits.min_rows and n < limits.min_rows:
            yield f"{form.name} wants at least {limits.min_rows} rows to train on; {kind} has {n}"
        if limits.max_rows and n > limits.max_rows:
            yield f"{form.name} takes at most {limits.max_rows:,} rows to train on; {kind} has {n:,}"
        if limits.max_tokens and spread["most"] > limits.max_tokens:
            yield f"{form.name} takes at most {limits.max_tokens:,} tokens a row; {kind} has one of {spread['most']:,}"


def _finish(folder: Path, form: Format, written: Written, licence: str, told: Mapping[str, Any]) -> None:
    kinds: list[Kind] = [kind for kind in form.shapes if any(where.startswith(f"{kind}/") for where in written.rows)]
    for name, text in form.beside(kinds).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / CARD).write_text(card(form, written.rows, written.left_out, written.tokens, licence), encoding="utf-8")
    manifest = {
        "format": form.name, "licence": licence, "rows": written.rows, "left_out": written.left_out,
        "tokens": written.tokens, "warnings": written.warnings, **told,
    }  # fmt: skip
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    (folder / MANIFEST).write_bytes(orjson.dumps(manifest, option=options))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = "".join(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    (folder / SUMS).write_text(sums, encoding="utf-8")


def _swap(new: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    new.rename(out)
    shutil.rmtree(old, ignore_errors=True)
