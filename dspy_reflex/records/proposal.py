"""A behavioural rule that a program proposes; nothing happens until a person approves it."""

from __future__ import annotations

from pydantic import Field

from dspy_reflex.records.record import Component, Record

MAX_RULE_CHARS = 300
"""A rule longer than this is not one behaviour."""


class Proposal(Record):
    """One rule, where it should live, and why."""

    id: str
    """`prop_` and 16 hex digits of cause, component and rule: proposing the same thing twice gives the same id."""
    failure_ids: tuple[str, ...]
    """The failures it was proposed for; of more than five, the program was shown the first five."""
    root_cause: str
    """Their root cause."""
    component: Component
    """The rule file it belongs in."""
    rule: str = Field(min_length=1, max_length=MAX_RULE_CHARS)
    """One imperative behaviour: trigger, action, bound."""
    rationale: str = ""
    """Why this rule would have helped."""
    replaces: tuple[str, ...] = ()
    """Ids of rules that go out of the file when this one goes in."""
    program: str
    """Name and version of the program."""
    model: str
    """The model that ran it."""
    score: str
    """What the program scored; `unmeasured` when nobody measured it with this model."""
