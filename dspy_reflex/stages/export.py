"""Approved rules out of the store, as training rows in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from dspy_reflex.errors import ExportError
from dspy_reflex.finetune.folder import MANIFEST, NONE, Written, ids_of, tally, write
from dspy_reflex.finetune.formats.base import Format
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.plan import Plan, Source
from dspy_reflex.finetune.row import Row
from dspy_reflex.runtime.library import bundled
from dspy_reflex.store.store import Store


@dataclass(frozen=True)
class Exported:
    """What an export came to."""

    written: Written
    rules: tuple[str, ...]
    """Proposals whose rows are in it."""
    withdrawn: tuple[str, ...]
    """Proposals that the folder had rows of, and that are not taught any more."""


def guard_for(eval_sets: Sequence[Path]) -> Guard:
    """A guard over the bundled eval set and these."""
    return Guard([bundled("datasets") / "failures", *eval_sets])


def training_rows(store: Store, plan: Plan, guard: Guard) -> Iterator[Row]:
    """Rows as they are, before any format."""
    with store.read() as connection:
        yield from Source(connection, plan, guard)


def export(
    store: Store,
    plan: Plan,
    guard: Guard,
    form: Format,
    out: Path,
    *,
    licence: str,
    new_since: Path | None = None,
    dry_run: bool = False,
) -> Exported:
    """Write the folder anew; without a row nothing is written.

    Args:
        store: Where rules, failures and reviews are.
        plan: What is wanted.
        guard: What no row may hold.
        form: The format.
        out: The folder.
        licence: What the rows may be used for.
        new_since: Another export; what it has is left out.
        dry_run: Count only.

    Raises:
        ExportError: A folder is no export, or cannot be written.
    """
    others = ids_of(new_since) if new_since else NONE
    before = _rules_in(out)
    with store.read() as connection:
        source = Source(connection, plan, guard)
        rules = tuple(source.rules)
        withdrawn = tuple(sorted(set(before) - set(rules)))
        if dry_run:
            written = tally(source, form, left_out=source.left_out, but=others)
        else:
            told = {"rules": rules, "withdrawn": withdrawn}
            written = write(source, form, out, left_out=source.left_out, licence=licence, told=told, but=others)
    return Exported(written, rules, withdrawn)


def check(file: Path, form: Format) -> tuple[int, list[str]]:
    """Look at a file of rows as their format wants them.

    Returns:
        How many rows there are, and what is wrong, each with file and line.

    Raises:
        ExportError: The file cannot be read.
    """
    problems: list[str] = []
    rows = 0
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                rows += 1
                problems += [f"{file}:{number}: {wrong}"] if (wrong := _problem(line, form)) else []
    except OSError as error:
        raise ExportError(f"{file}: cannot be read: {error}") from error
    return rows, problems


def _problem(line: bytes, form: Format) -> str:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"not JSON: {error}"
    found = Counter(shape.problem(row) for shape in form.shapes.values())
    return "" if "" in found else next(iter(found))


def _rules_in(out: Path) -> tuple[str, ...]:
    try:
        return tuple(orjson.loads((out / MANIFEST).read_bytes())["rules"])
    except FileNotFoundError:
        return ()
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ExportError(f"{out}: is there and is no export of ours; choose another --out") from error
