"""An export as a folder: rows by kind and split, their lineage, a card, a manifest, schemas and checksums."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from dspy_reflex.errors import ExportError
from dspy_reflex.finetune.book import LINEAGE, NONE, Book, Ids, warnings
from dspy_reflex.finetune.card import Contents, card
from dspy_reflex.finetune.formats.base import Format
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import number_of
from dspy_reflex.finetune.sink import sha256_of
from dspy_reflex.finetune.source import Source

MANIFEST, SUMS, CARD = "manifest.json", "SHA256SUMS", "README.md"
INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True)
class Earlier:
    """What an export that is there already holds."""

    ids: Ids = NONE
    rules: frozenset[str] = frozenset()
    """Proposals that were taught in it, or had been withdrawn before."""


@dataclass(frozen=True)
class Written:
    """What an export holds."""

    contents: Contents
    rules: tuple[str, ...]
    """Proposals that are taught in it."""
    added: int
    """Rows that the folder did not have before."""
    gone: int
    """Rows that it had, and that nothing stands behind any more."""
    warnings: tuple[str, ...]


def write(source: Source, form: Format, out: Path, plan: Plan, licence: str, *, but: Earlier, dry_run: bool) -> Written:
    """Write a folder anew, as a whole or not at all; without a row nothing is written.

    If an earlier export is there, it is replaced even by one without rows: what was withdrawn must not stay.

    Args:
        source: The rows, in the order in which they are to stand.
        form: The format.
        out: The folder.
        plan: How the rows were chosen, for card and manifest.
        licence: What they may be used for.
        but: An export whose rows are left out.
        dry_run: Count only.

    Raises:
        ExportError: The folder holds something else, or cannot be written.
    """
    before = earlier(_usable(out))
    building = out.with_name(f".{out.name}.new")
    shutil.rmtree(building, ignore_errors=True)
    try:
        book = Book(form, None if dry_run else building, licence, but.ids, before.ids)
        with closing(book):
            for row in source:
                book.enter(row)
        withdrawn = tuple(sorted((before.rules | but.rules) - source.approved))
        told = book.contents(source.left_out, source.redacted, withdrawn)
        written = Written(told, tuple(sorted(book.rules)), *book.added_and_gone, tuple(warnings(form, told)))
        if not dry_run and (told.rows or before.ids):
            _finish(building, form, written, plan, licence)
            _swap(building, out)
    except OSError as error:
        raise ExportError(f"{out}: cannot be written: {error}; free some space or choose another --out") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return written


def earlier(folder: Path) -> Earlier:
    """What an export holds; nothing if there is no such folder, or nothing in it.

    Raises:
        ExportError: It is no export.
    """
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return Earlier()
        told = orjson.loads((folder / MANIFEST).read_bytes())
        with (folder / LINEAGE).open("rb") as lines:
            ids = frozenset(number_of(orjson.loads(line)["id"]) for line in lines)
        return Earlier(ids, frozenset([*told["rules"], *told["withdrawn"]]))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{folder}: is there and is no export of ours; choose another folder") from error


def _usable(out: Path) -> Path:
    if out.resolve() == Path.cwd():
        raise ExportError(f"{out}: is the folder you are in, and would be replaced; choose another --out")
    if not out.exists() and _aside(out).exists():
        _aside(out).rename(out)  # a kill came between the two steps of a replacement
    return out


def _aside(out: Path) -> Path:
    """Where the former export is while the new one takes its place."""
    return out.with_name(f".{out.name}.old")


def _finish(folder: Path, form: Format, written: Written, plan: Plan, licence: str) -> None:
    told = written.contents
    for name, text in form.beside(list(told.rows)).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "schemas").mkdir()
    kinds = {file.partition("/")[0] for file in told.rows}
    for kind, shape in form.shapes.items():
        if kind in kinds:
            (folder / "schemas" / f"{kind}.json").write_bytes(orjson.dumps(shape.schema, option=INDENTED))
    (folder / CARD).write_text(card(form, told, plan, licence), encoding="utf-8")
    manifest = {
        **asdict(told), "format": form.name, "licence": licence, "plan": asdict(plan), "rules": written.rules,
        "warnings": written.warnings,
    }  # fmt: skip
    (folder / MANIFEST).write_bytes(orjson.dumps(manifest, option=INDENTED))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = "".join(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    (folder / SUMS).write_text(sums, encoding="utf-8")


def _swap(new: Path, out: Path) -> None:
    shutil.rmtree(_aside(out), ignore_errors=True)
    if out.exists():
        out.rename(_aside(out))
    new.rename(out)
    shutil.rmtree(_aside(out), ignore_errors=True)
