"""Approved rules out of the store, as training rows in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from dspy_reflex.errors import ExportError
from dspy_reflex.finetune.folder import Earlier, Written, earlier, write
from dspy_reflex.finetune.formats.base import Format
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Row
from dspy_reflex.finetune.source import Source
from dspy_reflex.runtime.library import bundled
from dspy_reflex.store.store import Store


def guard_for(eval_sets: Sequence[Path]) -> Guard:
    """A guard over the bundled eval set and these.

    Raises:
        DatasetError: One of them cannot be read.
    """
    return Guard([_bundled(), *eval_sets]) if eval_sets else _usual_guard()


@cache
def _usual_guard() -> Guard:
    """Read once a process: what the package brings does not change."""
    return Guard([_bundled()])


def _bundled() -> Path:
    return bundled("datasets") / "failures"


def training_rows(store: Store, plan: Plan, guard: Guard) -> Iterator[Row]:
    """Rows as they are, before any format.

    Raises:
        StoreError: There is no proposal that the plan names.
    """
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
) -> Written:
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
        StoreError: There is no proposal that the plan names.
    """
    others = _other(new_since, out) if new_since else Earlier()
    with store.read() as connection:
        return write(Source(connection, plan, guard), form, out, plan, licence, but=others, dry_run=dry_run)


def _other(new_since: Path, out: Path) -> Earlier:
    if new_since.resolve() == out.resolve():
        raise ExportError(f"{out}: would be replaced by what is new since itself; choose another --out")
    if not new_since.exists():
        raise ExportError(f"{new_since}: there is no such export; check --new-since")
    return earlier(new_since)
