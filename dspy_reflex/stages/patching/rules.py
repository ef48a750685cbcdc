"""The rules in files: which they are, taking one out that is no longer needed, and making one of two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.errors import ReviewError, StoreError
from dspy_reflex.ids import new_id
from dspy_reflex.records.diagnosis import PERSON
from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.records.review import STANDING, FiledProposal
from dspy_reflex.stages.patching.carrying import carry_out
from dspy_reflex.stages.patching.planning import Draft, Planned, name_of, rules_after
from dspy_reflex.stages.patching.revert import Reverted
from dspy_reflex.stages.patching.standing import Rule, looked_up
from dspy_reflex.stages.proposing.preview import base_of
from dspy_reflex.stages.proposing.waiting import SEVERITIES
from dspy_reflex.stages.reviewing.listing import proposals_for
from dspy_reflex.store import proposals
from dspy_reflex.store.store import Store
from dspy_reflex.targets.edit import remove


def standing_rules(store: Store, settings: Settings, agents: Sequence[str] | None = None) -> list[Rule]:
    """The rules in files, oldest first; of the targets of these agents, or of all."""
    found = proposals_for(store, settings, STANDING, agents)
    with store.read() as connection:
        return looked_up(connection, settings, found)


def retire(
    store: Store, settings: Settings, proposal_id: str, *, by: str, reason: str, dry_run: bool = False
) -> Reverted:
    """Take a rule out of its file because it is no longer needed. That is no lesson: should its failures come back, so may it.

    Raises:
        StoreError: There is no such rule, or it was never in a file.
        TargetError: Its file cannot be written.
        HandEditError: Somebody changed our block by hand.
        ReviewError: Nobody is named.
    """

    def plan(connection: Connection) -> Planned:
        draft = Draft(connection, by)
        proposal = proposals.get(connection, proposal_id)
        if proposal.state in STANDING:
            of_file = proposals.patches_of(connection, file=proposal.file)
            line = rules_after(of_file)[proposal.id]
            draft.add(proposal.id, "retire", Path(proposal.file), name_of(of_file[-1]), [remove(line)])
        elif proposal.state != "reverted":
            raise StoreError(f"{proposal.id} is {proposal.state}, so it is in no file and cannot be retired")
        return draft.planned()

    planned = carry_out(store, settings, plan, reason, dry_run=dry_run)
    return Reverted(planned.patches, planned.diff)


def merge(store: Store, first_id: str, second_id: str, rule: str, *, by: str) -> FiledProposal:
    """Propose one rule in place of two. Nothing changes before it is reviewed and applied; then the two go out as it comes in.

    Raises:
        StoreError: One of them is in no file, or they are not of one file and one root cause.
        ReviewError: Nobody is named, or the rule is too long or empty.
    """
    words = " ".join(rule.split())
    if not by.strip():
        raise ReviewError("nobody is named; say with --by who does this")
    if not 0 < len(words) <= MAX_RULE_CHARS:
        raise ReviewError(f"a rule of {len(words)} characters; write one of 1 to {MAX_RULE_CHARS}")
    with store.write() as connection:
        first, second = (proposals.get(connection, each, lock=True) for each in (first_id, second_id))
        _check_pair(first, second)
        merged = _merged(first, second, words, by)
        proposals.file(connection, merged, actor=by)
    return merged


def _check_pair(first: FiledProposal, second: FiledProposal) -> None:
    if first.id == second.id:
        raise StoreError(f"{first.id} cannot be merged with itself; name two rules")
    for one in (first, second):
        if one.state not in STANDING:
            raise StoreError(f"{one.id} is {one.state}; only rules that are in a file can be merged")
    if _place(first) != _place(second):
        raise StoreError(f"{first.id} and {second.id} are not of one file and one root cause; merge others")


def _place(one: FiledProposal) -> tuple[str, str, str, str]:
    return one.agent_id, one.file, one.proposal.component, one.proposal.root_cause


def _merged(first: FiledProposal, second: FiledProposal, rule: str, by: str) -> FiledProposal:
    ids = tuple(dict.fromkeys([*first.proposal.failure_ids, *second.proposal.failure_ids]))
    said = {
        "rule": rule, "failure_ids": ids, "replaces": (first.id, second.id), "program": PERSON, "model": by,
        "rationale": f"In place of {first.id} and {second.id}.", "score": "unmeasured",
    }  # fmt: skip
    return first.model_copy(
        update={
            "id": new_id("prop"), "at": now(), "state": "pending", "rule": rule, "approval": None,
            "base": base_of(Path(first.file)), "proposal": first.proposal.model_copy(update=said),
            "severity": max(first.severity, second.severity, key=SEVERITIES.index),
            "confidence": (first.confidence + second.confidence) / 2,
        }
    )  # fmt: skip
