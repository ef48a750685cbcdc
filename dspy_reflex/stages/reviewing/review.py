"""What people say of proposals. Each act is one transaction: the move, the review, its line in the audit trail.

An approval is of words, a file, and that file as it is now; `apply` holds the three against their hash again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue
from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.errors import ReflexError, ReviewError
from dspy_reflex.ids import new_id
from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.records.review import FiledProposal, Review, ReviewAction, approval_hash
from dspy_reflex.redaction.redact import redact, redact_value
from dspy_reflex.runtime.inputs import MAX_FAILURES
from dspy_reflex.stages.proposing.drafts import lint_of
from dspy_reflex.stages.proposing.preview import base_of
from dspy_reflex.store import proposals
from dspy_reflex.store.outcomes import failures_of
from dspy_reflex.store.store import Store
from dspy_reflex.store.text import unstorable

POLICY = "policy:"
"""What the name of a policy begins with where people's names stand."""


@dataclass(frozen=True)
class Act:
    """Who decides about a proposal, and what they have to say."""

    by: str
    """A person; or `policy:` and the name of a policy."""
    reason: str = ""
    correction: JsonValue = None
    """What the agent should have done."""
    base: str | None = None
    """SHA-256 of the rule file that they were shown; None if they were shown none."""
    policy: str | None = None
    """The policy, if no person decides."""


@dataclass(frozen=True)
class Several:
    """What came of approving many at once."""

    approved: tuple[FiledProposal, ...]
    refused: tuple[tuple[FiledProposal, str], ...]
    """Those that could not be approved, and why."""


def approve(store: Store, proposal_id: str, act: Act) -> FiledProposal:
    """Approve a rule as it stands.

    Raises:
        StoreError: There is no such proposal, or it cannot be approved any more.
        ReviewError: The rule does not pass the lint, its file is not what was shown, or nobody is named.
        TargetError: Its file cannot be read.
    """
    act = accountable(act)
    with store.write() as connection:
        proposal = proposals.get(connection, proposal_id, lock=True)
        return approve_in(connection, proposal, act)


def edit(store: Store, proposal_id: str, rule: str, act: Act) -> FiledProposal:
    """Approve other words for a rule.

    Raises:
        StoreError: There is no such proposal, or it cannot be approved any more.
        ReviewError: The rule does not pass the lint, its file is not what was shown, or nobody is named.
        TargetError: Its file cannot be read.
    """
    act = accountable(act)
    with store.write() as connection:
        proposal = proposals.get(connection, proposal_id, lock=True)
        return approve_in(connection, proposal, act, rule)


def reject(store: Store, proposal_id: str, act: Act) -> FiledProposal:
    """Reject a rule, for a reason; the like of it is not proposed again.

    Raises:
        StoreError: There is no such proposal, or it cannot be rejected any more.
        ReviewError: No reason is given, or nobody is named.
    """
    act = accountable(act)
    if not act.reason.strip():
        raise ReviewError("a rejection needs a --reason: it is what the next proposal learns from")
    with store.write() as connection:
        proposal = proposals.get(connection, proposal_id, lock=True)
        moved = proposals.move(connection, proposal, "rejected", actor=act.by, action="reject", reason=act.reason)
        proposals.add_review(connection, _review(proposal, moved, "reject", act))
        proposals.learn(connection, moved, "rejected", act.reason)
        return moved


def defer(store: Store, proposal_id: str, act: Act) -> FiledProposal:
    """Leave a rule for later.

    Raises:
        StoreError: There is no such proposal, or it is not pending.
        ReviewError: Nobody is named.
    """
    act = accountable(act)
    with store.write() as connection:
        proposal = proposals.get(connection, proposal_id, lock=True)
        moved = proposals.move(connection, proposal, "deferred", actor=act.by, action="defer", reason=act.reason)
        proposals.add_review(connection, _review(proposal, moved, "defer", act))
        return moved


def approve_all(store: Store, proposal_ids: Sequence[str], act: Act) -> Several:
    """Approve each of these, one transaction each; what cannot be approved does not stop the others.

    Raises:
        ReviewError: Nobody is named.
    """
    act = accountable(act)
    approved: list[FiledProposal] = []
    refused: list[tuple[FiledProposal, str]] = []
    for one in proposal_ids:
        with store.read() as connection:
            proposal = proposals.get(connection, one)
        try:
            approved.append(approve(store, one, act))
        except ReflexError as error:
            refused.append((proposal, str(error)))
    return Several(tuple(approved), tuple(refused))


def approve_in(connection: Connection, proposal: FiledProposal, act: Act, rule: str | None = None) -> FiledProposal:
    """Approve a proposal that was got with `lock` in this write transaction.

    Raises:
        StoreError: It cannot be approved any more.
        ReviewError: The rule does not pass the lint, its file is not what was shown, or it is for people to decide.
        TargetError: Its file cannot be read.
    """
    if act.policy and proposal.proposal.component == "SOUL":
        raise ReviewError(f"{proposal.id} is a SOUL rule; only a person approves one")
    words = proposal.rule if rule is None else rule.strip()
    _check_words(connection, proposal, words)
    base = base_of(Path(proposal.file))
    if act.base not in (None, base):
        raise ReviewError(f"{proposal.file} was changed while {proposal.id} was on the screen; look at it again")
    action: ReviewAction = "approve" if words == proposal.rule else "edit"
    changed = {"rule": words, "base": base, "approval": approval_hash(words, proposal.file, base)}
    moved = proposals.move(connection, proposal, "approved", actor=act.by, action=action, reason=act.reason, **changed)
    proposals.add_review(connection, _review(proposal, moved, action, act))
    return moved


def accountable(act: Act) -> Act:
    """The act of a person, without secrets in what they wrote.

    Raises:
        ReviewError: No name is given, or that of a policy; or what they wrote cannot be kept.
    """
    written = {"the name of who decides": act.by, "the reason": act.reason, "the correction": act.correction}
    for name, value in written.items():
        if why := unstorable(value):
            raise ReviewError(f"{name} cannot be kept: {why}")
    if not act.by.strip() or act.by.strip().startswith(POLICY):
        raise ReviewError(f"{act.by!r} is no person; say with --by who decides")
    return replace(act, reason=redact(act.reason)[0], correction=redact_value(act.correction)[0])


def _check_words(connection: Connection, proposal: FiledProposal, words: str) -> None:
    if not 0 < len(words) <= MAX_RULE_CHARS:
        raise ReviewError(f"a rule of {len(words)} characters; write one of 1 to {MAX_RULE_CHARS}")
    shown = failures_of(connection, proposal.proposal.failure_ids[:MAX_FAILURES])
    if why := lint_of(words, shown):
        raise ReviewError(f"the rule of {proposal.id} cannot be approved: {why}")


def _review(before: FiledProposal, after: FiledProposal, action: ReviewAction, act: Act) -> Review:
    return Review(
        id=new_id("rev"), proposal_id=before.id, at=now(), by=act.by, action=action, reason=act.reason,
        before=before.rule, rule=after.rule, correction=act.correction, policy=act.policy,
    )  # fmt: skip
