"""What may be approved without a person: nothing, unless somebody wrote a policy down.

A policy decides on pending proposals only, once for each, in the order of the settings. It holds no proposal back: what
it does not approve stays for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.config import PolicySettings, Settings
from dspy_reflex.errors import ProgramError, ReviewError, TargetError
from dspy_reflex.records.diagnosis import PERSON, Diagnosis
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.runtime import library
from dspy_reflex.stages.proposing.waiting import SEVERITIES
from dspy_reflex.stages.reviewing.review import POLICY, Act, approve_in
from dspy_reflex.store import proposals
from dspy_reflex.store.diagnoses import current
from dspy_reflex.store.store import Store


@dataclass(frozen=True)
class Decision:
    """What a policy made of a proposal."""

    proposal_id: str
    policy: str
    approved: bool
    why: str
    """What it was approved on, or what was in the way."""


def decide(store: Store, settings: Settings) -> list[Decision]:
    """Hold every pending proposal against every policy; the first that may, approves."""
    if not settings.policies:
        return []
    with store.read() as connection:
        pending = [one.id for one in proposals.find(connection, ["pending"])]
    return [made for one in pending for made in _decide(store, settings.policies, one)]


def _decide(store: Store, policies: Sequence[PolicySettings], proposal_id: str) -> list[Decision]:
    """What each policy says of one proposal, up to the one that approves it."""
    said: list[Decision] = []
    for policy in policies:
        made = _made(store, policy, proposal_id)
        if made:
            said.append(made)
        if made is None or made.approved:
            break
    return said


def _made(store: Store, policy: PolicySettings, proposal_id: str) -> Decision | None:
    """One decision, in a transaction of its own; None if somebody else has decided."""
    try:
        with store.write() as connection:
            proposal = proposals.get(connection, proposal_id, lock=True)
            if proposal.state != "pending":
                return None
            why_not, why = _judged(connection, policy, proposal)
            if not why_not:
                approve_in(connection, proposal, Act(f"{POLICY}{policy.name}", why, policy=policy.name))
            return Decision(proposal_id, policy.name, not why_not, why_not or why)
    except (ReviewError, TargetError) as error:
        return Decision(proposal_id, policy.name, approved=False, why=str(error))


def _judged(connection: Connection, policy: PolicySettings, proposal: FiledProposal) -> tuple[str, str]:
    """What is in the way of an approval, empty if nothing is; and what speaks for it."""
    found = current(connection, proposal.proposal.failure_ids)
    behind = [one for one in found.values() if one.root_cause == proposal.proposal.root_cause]
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    why_not = _not_its_business(policy, proposal) or _not_sure_enough(policy, behind)
    if not why_not and proposals.decided_by(connection, policy.name, midnight) >= policy.per_day:
        why_not = f"it has made its {policy.per_day} approvals of today"
    mean = sum(one.confidence for one in behind) / max(1, len(behind))
    return why_not, f"{len(behind)} failures, none worse than {proposal.severity}, confidence {mean:.2f}"


def _not_its_business(policy: PolicySettings, proposal: FiledProposal) -> str:
    program = proposal.proposal
    if program.component not in policy.components:
        return f"it does not decide on {program.component}"
    if program.root_cause not in policy.causes:
        return f"it does not decide on {program.root_cause}"
    if SEVERITIES.index(proposal.severity) > SEVERITIES.index(policy.max_severity):
        return f"a failure was {proposal.severity}; it decides up to {policy.max_severity}"
    return ""


def _not_sure_enough(policy: PolicySettings, behind: Sequence[Diagnosis]) -> str:
    if len(behind) < policy.min_failures:
        return f"{len(behind)} failures still have this cause; it takes {policy.min_failures}"
    for program, model in dict.fromkeys((one.program, one.model) for one in behind):
        if not _is_calibrated(program, model):
            return f"the confidence of {program} on {model} is not calibrated, so it says nothing"
    mean = sum(one.confidence for one in behind) / len(behind)
    return f"confidence {mean:.2f} is below {policy.min_confidence:.2f}" if mean < policy.min_confidence else ""


def _is_calibrated(program: str, model: str) -> bool:
    """Whether a program's confidence on a model was held against what is right; a person's word needs none of that."""
    if program == PERSON:
        return True
    try:
        found = library.named(program)
    except ProgramError:
        return False
    return found is not None and found.calibration is not None and found.model == model
