"""Outcomes, diagnoses and proposals for tests, each with everything that a test does not care about."""

from __future__ import annotations

from typing import Any

from dspy_reflex.clock import now
from dspy_reflex.ids import new_id
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.schema import micros

PROGRAM = "root_cause@0123456789ab"


def event(**changed: Any) -> dict[str, Any]:
    """A failure as the recorder writes it."""
    usual = {
        "id": new_id("evt"), "at": micros(now()), "agent_id": "veya", "parent_agent_id": None, "ok": False,
        "task": "Send the briefing", "expected_outcome": "By 7:00", "actual_outcome": "429, no retry",
        "severity": "high", "context": {"tool": "telegram"},
    }  # fmt: skip
    return usual | changed


def good(**changed: Any) -> dict[str, Any]:
    """A good outcome as the recorder writes it."""
    return event(ok=True, expected_outcome=None, actual_outcome=None, severity=None, context=None, **changed)


def diagnosed(failure: LoggedFailure, cause: str | None = "tool_failure", **changed: Any) -> Diagnosed:
    """A failure with something said of it."""
    usual = {
        "failure_id": failure.id, "root_cause": cause, "confidence": 0.9, "needs_review": False, "symptom": "rate_limit",
        "signature": "<num>, no retry", "program": PROGRAM, "model": "offline", "score": "unmeasured",
    }  # fmt: skip
    return Diagnosed(failure, Diagnosis.model_validate(usual | changed))


def filed(
    *failure_ids: str, rule: str = "When a call is throttled, wait and retry at most three times."
) -> FiledProposal:
    """A proposal that nobody has looked at."""
    program = Proposal(
        id="prop_0123456789abcdef", failure_ids=failure_ids, root_cause="tool_failure", component="TOOLS", rule=rule,
        rationale="It was throttled.", program="rule@0123456789ab", model="offline", score="unmeasured",
    )  # fmt: skip
    return FiledProposal(
        id=new_id("prop"), at=now(), agent_id="*", symptom="rate_limit", severity="high", confidence=0.9,
        file="/agent/TOOLS.md", base="0" * 64, rule=rule, proposal=program,
    )  # fmt: skip
