"""Patches carried out: files and store in one act, only one process at a time.

A rule that goes in or out takes its proposal with it. A process that dies in between leaves an intent behind (see
`targets.files`), and the next one finishes it if the store has the patches, else undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from dspy_reflex.config import Settings
from dspy_reflex.records.review import Patch
from dspy_reflex.stages.patching.planning import Planned, edits_of
from dspy_reflex.store import proposals
from dspy_reflex.store.audit import note
from dspy_reflex.store.store import Store
from dspy_reflex.targets.files import INTENT, Recovered, applier


def carry_out(
    store: Store, settings: Settings, plan: Callable[[Connection], Planned], reason: str, *, dry_run: bool = False
) -> Planned:
    """Plan, and unless this is a dry run write files and store as one act; only one process at a time.

    Raises:
        TargetError: A file cannot be written, or another process is at it. Nothing is changed.
        StoreError: A rule was moved by somebody else at the same time. Nothing is changed.
    """
    if dry_run:
        with store.read() as connection:
            return plan(connection)
    with applier(settings.home, partial(_is_stored, store)) as (files, recovered):
        _tell(store, recovered)
        with store.read() as connection:
            planned = plan(connection)
        if planned.patches:
            with files.written(planned.patches[0].id, planned.changes), store.write() as connection:
                _enter(connection, planned.patches, reason)
        return planned


def settle(store: Store, home: Path) -> Recovered | None:
    """Finish or undo what a process that died left half done; None if there is nothing of the kind.

    Raises:
        TargetError: It can be neither finished nor undone; says why.
    """
    if not any((home.expanduser() / "patches").glob(f"*{INTENT}*")):
        return None
    with applier(home, partial(_is_stored, store)) as (_, recovered):
        _tell(store, recovered)
        return recovered


def _enter(connection: Connection, patches: Iterable[Patch], reason: str) -> None:
    """Keep the patches, and move each rule that goes in or out."""
    for patch in patches:
        proposals.add_patch(connection, patch)
        note(connection, patch.id, patch.action, actor=patch.by, reason=f"{patch.proposal_id}: {reason}".rstrip(": "))
        for edit in edits_of(patch):
            if edit.old and not edit.new:
                _out(connection, patch, edit.old.rule_id, reason)
            if edit.new and not edit.old:
                rule = proposals.get(connection, edit.new.rule_id, lock=True)
                proposals.move(connection, rule, "applied", actor=patch.by, action=patch.action, reason=reason)


def _out(connection: Connection, patch: Patch, rule_id: str, reason: str) -> None:
    """A rule goes out of its file. Only one that was reverted is a lesson: the others gave way."""
    rule = proposals.get(connection, rule_id, lock=True)
    merged = patch.action == "apply"
    why = f"merged into {patch.proposal_id}" if merged else reason
    action = "merge" if merged else patch.action
    proposals.move(connection, rule, "reverted", actor=patch.by, action=action, reason=why)
    if patch.action == "revert":
        proposals.learn(connection, rule, "reverted", reason)


def _tell(store: Store, recovered: Recovered | None) -> None:
    """Leave a line of what was made of a patch that was half done."""
    if recovered:
        with store.write() as connection:
            after = "finished" if recovered.finished else "undone"
            note(connection, recovered.patch_id, "recover", actor="recover", reason="a process died", after=after)


def _is_stored(store: Store, patch_id: str) -> bool:
    with store.read() as connection:
        return proposals.get_patch(connection, patch_id) is not None
