"""The rules that are in files now, and what came of them since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from dspy_reflex.config import Settings
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.stages.patching.planning import went_in
from dspy_reflex.store import outcomes, proposals
from dspy_reflex.store.diagnoses import times
from dspy_reflex.targets.where import agents_of


@dataclass(frozen=True)
class Rule:
    """A rule in a file."""

    proposal: FiledProposal
    """Where it came from; its id is the rule's."""
    since: datetime
    """When it went in, the last time."""
    recurred: int
    """Failures of its root cause and symptom since then, of the agents that it is for."""


def looked_up(connection: Connection, settings: Settings, standing: Iterable[FiledProposal]) -> list[Rule]:
    """What came of rules."""
    known, parents = outcomes.everybody(connection), outcomes.parents(connection)
    found: list[Rule] = []
    for one in standing:
        since = applied_at(connection, one)
        agents = agents_of(one.agent_id, known, settings.targets, settings.base_dir, parents)
        seen = times(connection, one.proposal.root_cause, one.symptom, agents)
        found.append(Rule(one, since, sum(at >= since for at in seen)))
    return found


def applied_at(connection: Connection, rule: FiledProposal) -> datetime:
    """When a rule in a file went in, the last time."""
    patches = proposals.patches_of(connection, file=rule.file)
    return next(patch.at for patch in reversed(patches) if rule.id in went_in(patch))
