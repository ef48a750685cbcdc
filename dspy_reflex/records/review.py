"""A proposal on its way through review, and what was said and done on the way."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue

from dspy_reflex.records.proposal import MAX_RULE_CHARS, Proposal
from dspy_reflex.records.record import Record, Severity

State = Literal["pending", "approved", "rejected", "deferred", "applied", "kept", "reverted"]
"""Where a proposal stands."""

MOVES: dict[State, tuple[State, ...]] = {
    "pending": ("approved", "rejected", "deferred"),
    "deferred": ("approved", "rejected"),
    "approved": ("applied", "rejected"),
    "applied": ("kept", "reverted"),
    "kept": ("reverted",),
    "rejected": (),
    "reverted": ("applied",),
}
"""Where it may go from each state, and nowhere else. An approval can be taken back until it is applied. What was reverted
comes back only where the very patch that took it out is reverted, so that a file is again as it was."""

SETTLED: tuple[State, ...] = ("rejected", "reverted")
"""States of rules that are not proposed again."""
STANDING: tuple[State, ...] = ("applied", "kept")
"""States of rules that are in a file."""


def approval_hash(rule: str, file: str, base: str) -> str:
    """Hash of what an approval is for: the words of the rule, the file that they go to, and SHA-256 of that file."""
    return hashlib.sha256(json.dumps([rule, file, base]).encode()).hexdigest()


class FiledProposal(Record):
    """A proposal in the store: whose rule file it would change, and how far it has come."""

    id: str
    """`prop_` and a ULID."""
    at: AwareDatetime
    """When it was filed."""
    state: State = "pending"
    """Where it stands."""
    agent_id: str
    """The target whose agents it is for: an agent, or a pattern such as `support-*`."""
    symptom: str
    """What was seen in its failures."""
    severity: Severity
    """The worst of its failures."""
    confidence: float = Field(ge=0.0, le=1.0)
    """Mean confidence of the diagnoses behind it."""
    file: str
    """The rule file it would change."""
    base: str
    """SHA-256 of that file when the proposal was made; of nothing if there was none."""
    rule: str = Field(min_length=1, max_length=MAX_RULE_CHARS)
    """The rule as it stands: the program's, or a reviewer's edit of it."""
    approval: str | None = None
    """Hash of rule, target and base file that was approved; None until then."""
    proposal: Proposal
    """What the program proposed."""


ReviewAction = Literal["approve", "edit", "reject", "defer"]
"""What a reviewer does. An edit is an approval of other words."""


class Review(Record):
    """One act of review."""

    id: str
    """`rev_` and a ULID."""
    proposal_id: str
    """The proposal reviewed."""
    at: AwareDatetime
    """When."""
    by: str
    """Who."""
    action: ReviewAction
    """What they did."""
    reason: str = ""
    """Why."""
    before: str
    """The rule they were shown."""
    rule: str
    """The rule as it stood afterwards."""
    correction: JsonValue = None
    """What the agent should have done, where the reviewer wrote it down."""
    policy: str | None = None
    """The policy that decided, if no person did."""


PatchAction = Literal["apply", "revert", "retire"]
"""Whether a rule went in or out, and why out."""


class Patch(Record):
    """One edit of a rule file."""

    id: str
    """`patch_` and a ULID."""
    proposal_id: str
    """The proposal it carries out."""
    at: AwareDatetime
    """When."""
    by: str
    """Who."""
    action: PatchAction
    """What it was for."""
    file: str
    """The rule file."""
    before_sha256: str
    """Of the file before; of nothing if there was none."""
    after_sha256: str
    """Of the file after."""
    body: dict[str, JsonValue] = Field(default_factory=dict)
    """What it takes to undo it exactly."""


class Lesson(Record):
    """What came of a rule."""

    id: str
    """`lesson_` and a ULID."""
    at: AwareDatetime
    """When it was learned."""
    proposal_id: str
    """The rule's proposal."""
    kind: Literal["kept", "rejected", "reverted"]
    """What came of it."""
    agent_id: str
    """The target it was for."""
    root_cause: str
    """The cause it was against."""
    symptom: str
    """What was seen."""
    rule: str
    """Its text."""
    reason: str
    """Why it came to that."""


class AuditLine(Record):
    """Who moved what, from where to where, when and why."""

    id: str
    """`aud_` and a ULID: sorted by time."""
    at: AwareDatetime
    """When."""
    actor: str
    """Who."""
    subject: str
    """Id of what was moved."""
    action: str
    """What was done."""
    before: str | None = None
    """State before."""
    after: str | None = None
    """State after."""
    reason: str = ""
    """Why."""
