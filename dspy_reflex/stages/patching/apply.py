"""Approved rules into their files: all of those asked for, or none.

An approval is of words, a file, and that file at the time. Words and file are held against the approval's hash again.
Outside of our block the file may have changed since; the block itself must be as we wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.config import Settings, TargetSettings
from dspy_reflex.errors import StoreError, TargetError
from dspy_reflex.records.review import STANDING, FiledProposal, Patch, approval_hash
from dspy_reflex.stages.patching.carrying import carry_out
from dspy_reflex.stages.patching.planning import Draft, Planned
from dspy_reflex.stages.patching.standing import looked_up
from dspy_reflex.store import proposals
from dspy_reflex.store.store import Store
from dspy_reflex.targets.block import block_of, rules_of
from dspy_reflex.targets.budget import RuleUse, candidates, tokens
from dspy_reflex.targets.disk import resolved
from dspy_reflex.targets.edit import Edit, add, remove
from dspy_reflex.targets.intent import Change
from dspy_reflex.targets.rule import RuleLine
from dspy_reflex.targets.where import RuleFile, rule_file


@dataclass(frozen=True)
class Applied:
    """What was done, or on a dry run would be."""

    patches: tuple[Patch, ...]
    """One for each rule that went in."""
    already: tuple[FiledProposal, ...]
    """Rules asked for that are in their files."""
    diff: str
    """What changed, as a unified diff."""


def apply(
    store: Store, settings: Settings, proposal_ids: Sequence[str] | None, *, by: str, dry_run: bool = False
) -> Applied:
    """Write approved rules into their files.

    Args:
        store: The store.
        settings: Home, targets, and how much room rules may take.
        proposal_ids: Ids of proposals, or their beginnings; None is all that are approved.
        by: Who does it.
        dry_run: Whether only to say what would change.

    Raises:
        StoreError: There is no such proposal, or it is not approved.
        TargetError: A rule is not what was approved, its file cannot be written, or the rules would take too much room.
        HandEditError: Somebody changed our block by hand.
        ReviewError: Nobody is named.
    """
    already: list[FiledProposal] = []

    def plan(connection: Connection) -> Planned:
        asked = _asked(connection, proposal_ids)
        already[:] = [one for one in asked if one.state in STANDING]
        draft = Draft(connection, by)
        for one in asked:
            if one.state not in STANDING:
                _add(draft, one, settings)
        planned = draft.planned()
        for change in planned.changes:
            _check_room(connection, settings, change, planned.names[change.path])
        return planned

    planned = carry_out(store, settings, plan, "", dry_run=dry_run)
    return Applied(planned.patches, tuple(already), planned.diff)


def edits_for(proposal: FiledProposal, rules: Iterable[RuleLine], file: RuleFile) -> list[Edit]:
    """What a proposal does to its file today: what it replaces goes, its rule comes."""
    gone = [remove(rule) for rule in rules if rule.rule_id in proposal.proposal.replaces]
    return [*gone, add(RuleLine(proposal.id, proposal.rule, now().date(), file.section))]


def _asked(connection: Connection, ids: Sequence[str] | None) -> list[FiledProposal]:
    if ids is None:
        return proposals.find(connection, ["approved"])
    found = {one.id: one for one in (proposals.get(connection, each) for each in ids)}
    for one in found.values():
        if one.state not in ("approved", *STANDING):
            raise StoreError(f"{one.id} is {one.state}; only approved rules are applied, see `dspy-reflex review`")
    return list(found.values())


def _add(draft: Draft, proposal: FiledProposal, settings: Settings) -> None:
    if approval_hash(proposal.rule, proposal.file, proposal.base) != proposal.approval:
        raise TargetError(
            f"{proposal.id} is not what was approved, its rule or file was changed since; review again: reject it"
        )
    file = _file_of(proposal, settings)
    draft.add(proposal.id, "apply", file.path, file.name, edits_for(proposal, draft.rules(file.path, file.name), file))


def _file_of(proposal: FiledProposal, settings: Settings) -> RuleFile:
    """Where the rule goes by the settings, which must be where it was approved for."""
    targets = (*settings.targets, TargetSettings(root=settings.base_dir))
    target = next((one for one in targets if one.agent == proposal.agent_id), None)
    if target is None:
        raise TargetError(
            f"{proposal.id} is for the target {proposal.agent_id!r}, which is gone; review again: reject it"
        )
    file = rule_file(target, proposal.proposal.component)
    if file.path != Path(proposal.file) or file.path != resolved(file.path):
        raise TargetError(
            f"{proposal.id} was approved for {proposal.file}, and its rules go to {file.path} now; "
            "review again: reject it, or send its rules there as before (REFLEX_BASE_DIR, or a target in the settings)"
        )
    return file


def _check_room(connection: Connection, settings: Settings, change: Change, name: str) -> None:
    """Refuse a block that grew over the budget, and say which rules could go."""
    before, after = (tokens(block_of(content, name)) for content in (change.before, change.after))
    surplus = after - settings.max_file_tokens
    if surplus <= 0 or after <= before:
        return
    there = {rule.rule_id: rule for rule in rules_of(change.before, name)}
    standing = looked_up(connection, settings, (proposals.get(connection, one) for one in there))
    uses = [
        RuleUse(there[one.proposal.id], one.recurred + (one.proposal.state == "kept"), one.since) for one in standing
    ]
    wanted = ", ".join(
        f"{one.rule.rule_id} ({one.reason}{f' by {one.by}' if one.by else ''}, {one.tokens} tokens)"
        for one in candidates(uses, surplus)
    )
    raise TargetError(
        f"{name}: its rules would take {after} tokens, {surplus} more than max_file_tokens allows; "
        + (f"first retire or merge {wanted}" if wanted else "apply fewer rules, or raise max_file_tokens")
    )
