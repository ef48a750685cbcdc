"""Failures with diagnoses, and proposals, in a store: what the verbs of the loop start from."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.proposing.filing import Proposed, propose_waiting
from dspy_reflex.stages.proposing.waiting import find_waiting
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store
from tests.runtime.programs import ScriptedModel, published, rule_answer
from tests.store.events import diagnosed, event

ARTIFACT = published("rule")
RULE = "When a pipe drips, close the main valve and check every joint twice before you open it again."


def known(
    store: Store,
    n: int = 2,
    cause: str | None = "leak",
    *,
    at: datetime | None = None,
    said: Any = None,
    **changed: Any,
) -> list[str]:
    """Take in failures that have a diagnosis; their ids."""
    events = [event(at=micros(at or now()), **changed) for _ in range(n)]
    with store.write() as connection:
        outcomes.take_in(connection, events)
        found = outcomes.failures_of(connection, [one["id"] for one in events])
        diagnoses.add(connection, [diagnosed(one, cause, **{"symptom": "timeout", **(said or {})}) for one in found])
    return [one["id"] for one in events]


def settings_for(folder: Path, **changed: Any) -> Settings:
    """Settings of one agent's folder."""
    return Settings.model_validate({"home": folder / "home", "base_dir": folder, **changed})


def asked(store: Store, settings: Settings, model: ScriptedModel | None = None, **options: Any) -> Proposed:
    """Propose for all that waits."""
    model = model or ScriptedModel(rule_answer(rule=RULE))
    filter_names = ("since", "agents", "include_unsure")
    found = find_waiting(store, settings, **{name: options.pop(name) for name in filter_names if name in options})
    return propose_waiting(store, settings, RuleProgram(ARTIFACT, model), found, **options)


def one_filed(store: Store, settings: Settings, **answer: str) -> FiledProposal:
    """A pending proposal for two failures."""
    known(store)
    (filed,) = asked(store, settings, ScriptedModel(rule_answer(**{"rule": RULE, **answer}))).filed
    return filed


def state_of(store: Store, proposal_id: str) -> FiledProposal:
    """A proposal as it stands."""
    with store.read() as connection:
        return proposals.get(connection, proposal_id)
