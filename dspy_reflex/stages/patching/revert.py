"""Patches undone, to the byte: one of them, or all since a time.

A patch can be undone while the rules that it touched are as it left them; where a later patch changed one, that one has
to go first, and is named. What a revert takes out is a lesson, so that the like of it is not proposed again. What a patch
had taken out, as a merge does, comes back with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from dspy_reflex.config import Settings
from dspy_reflex.errors import StoreError
from dspy_reflex.records.review import Patch
from dspy_reflex.stages.patching.carrying import carry_out
from dspy_reflex.stages.patching.planning import Draft, Planned, edits_of, name_of, rules_after, touched
from dspy_reflex.store import proposals
from dspy_reflex.store.store import Store
from dspy_reflex.targets.edit import Edit, undo
from dspy_reflex.targets.rule import RuleLine

Rules = Mapping[str, RuleLine]


@dataclass(frozen=True)
class Reverted:
    """What was undone, or on a dry run would be."""

    patches: tuple[Patch, ...]
    """What was done to undo it; none if it was undone before."""
    diff: str
    """What changed, as a unified diff."""


def revert(
    store: Store, settings: Settings, undone_id: str, *, by: str, reason: str, dry_run: bool = False
) -> Reverted:
    """Undo a patch, or the one that put a proposal's rule into its file.

    Args:
        store: The store.
        settings: Where home is.
        undone_id: Id of a patch, or of a proposal or its beginning.
        by: Who does it.
        reason: Why; it is what the next proposal learns from.
        dry_run: Whether only to say what would change.

    Raises:
        StoreError: There is no such patch or proposal, or its rule was never in a file.
        TargetError: A later patch depends on it; says which. Or its file cannot be written.
        HandEditError: Somebody changed our block by hand.
        ReviewError: Nobody is named.
    """

    def plan(connection: Connection) -> Planned:
        patch = _found(connection, undone_id)
        of_file = proposals.patches_of(connection, file=patch.file)
        draft = Draft(connection, by)
        if edits := _undoing(patch, of_file):
            draft.add(patch.proposal_id, "revert", Path(patch.file), name_of(patch), edits)
        return draft.planned()

    planned = carry_out(store, settings, plan, reason, dry_run=dry_run)
    return Reverted(planned.patches, planned.diff)


def revert_to(
    store: Store, settings: Settings, until: datetime, *, by: str, reason: str, dry_run: bool = False
) -> Reverted:
    """Bring the rules of all files back to what they were at a time: everything that was done since is undone.

    Rules that were taken out since come back. For the rest see `revert`.
    """

    def plan(connection: Connection) -> Planned:
        draft = Draft(connection, by)
        files: dict[str, list[Patch]] = {}
        for patch in proposals.patches_of(connection):
            files.setdefault(patch.file, []).append(patch)
        for path, of_file in files.items():
            for rule_id, edit in _back(rules_after(of_file), rules_after(of_file, until)):
                draft.add(rule_id, "revert", Path(path), name_of(of_file[-1]), [edit])
        return draft.planned()

    planned = carry_out(store, settings, plan, reason, dry_run=dry_run)
    return Reverted(planned.patches, planned.diff)


def _found(connection: Connection, undone_id: str) -> Patch:
    if undone_id.startswith("patch_"):
        if patch := proposals.get_patch(connection, undone_id):
            return patch
        raise StoreError(f"{undone_id!r}: no patch of this id; give the id of a proposal instead")
    proposal = proposals.get(connection, undone_id)
    for patch in proposals.patches_of(connection, proposal_id=proposal.id):
        if patch.action == "apply":
            return patch
    raise StoreError(f"{proposal.id} is {proposal.state} and was never in a file, so there is nothing to revert")


def _undoing(patch: Patch, of_file: Sequence[Patch]) -> tuple[Edit, ...]:
    """The edits that undo a patch; none if it is undone."""
    edits, rules = edits_of(patch), rules_after(of_file)
    changed = {rule_id for edit in edits for rule_id in edit.rule_ids if not _is_left(edit, rule_id, rules)}
    later = [one for one in of_file if one.id > patch.id and changed & touched(one)]
    undone = all(_is_left(Edit(edit.new, edit.old), one, rules) for edit in edits for one in edit.rule_ids)
    if undone and later[-1].action != "apply":
        return ()
    return undo(patch.id, edits, [(one.id, edits_of(one)) for one in later])


def _is_left(edit: Edit, rule_id: str, rules: Rules) -> bool:
    """Whether a rule is as an edit left it."""
    left = edit.new if edit.new and edit.new.rule_id == rule_id else None
    return rules.get(rule_id) == left


def _back(now: Rules, then: Rules) -> Iterable[tuple[str, Edit]]:
    """What brings the rules of one file back, rule by rule."""
    for rule_id in sorted(now.keys() | then.keys()):
        if now.get(rule_id) != then.get(rule_id):
            yield rule_id, Edit(now.get(rule_id), then.get(rule_id))
