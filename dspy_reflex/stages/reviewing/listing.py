"""Proposals for people to look at: which there are, and all there is to know of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dspy_reflex.config import Settings
from dspy_reflex.errors import TargetError
from dspy_reflex.records.review import FiledProposal, Review, State
from dspy_reflex.runtime.inputs import MAX_FAILURES
from dspy_reflex.stages.proposing.preview import Preview, preview
from dspy_reflex.store import outcomes, proposals
from dspy_reflex.store.diagnoses import Diagnosed, current
from dspy_reflex.store.store import Store
from dspy_reflex.targets.where import target_of

ON_THE_WAY: tuple[State, ...] = ("pending", "deferred", "approved")
"""States of rules that are in no file yet."""


@dataclass(frozen=True)
class Shown:
    """A proposal, what it was made from, what it would change, and what was said of it."""

    proposal: FiledProposal
    failures: tuple[Diagnosed, ...]
    """Those that the program was shown, as far as they are still there."""
    preview: Preview | None
    """What it would change; None where it is in its file, settled, or cannot be written."""
    problem: str
    """Why it cannot be written; empty if it can."""
    reviews: tuple[Review, ...]


def proposals_for(
    store: Store, settings: Settings, states: Sequence[State] | None, agents: Sequence[str] | None
) -> list[FiledProposal]:
    """Proposals in these states, for the targets of these agents; None is any."""
    with store.read() as connection:
        found = proposals.find(connection, states)
        if agents is None:
            return found
        parents = outcomes.parents(connection)
    patterns = {target_of(one, settings.targets, settings.base_dir, parents).agent for one in agents}
    return [one for one in found if one.agent_id in patterns]


def shown(store: Store, settings: Settings, proposal_id: str) -> Shown:
    """Everything about one proposal.

    Raises:
        StoreError: There is none, or more than one.
    """
    with store.read() as connection:
        proposal = proposals.get(connection, proposal_id)
        failures = outcomes.failures_of(connection, proposal.proposal.failure_ids[:MAX_FAILURES])
        told = current(connection, [one.id for one in failures])
        reviews = proposals.reviews_of(connection, [proposal.id])
    known = tuple(Diagnosed(one, told[one.id]) for one in failures if one.id in told)
    seen, problem = _previewed(proposal, settings)
    return Shown(proposal, known, seen, problem, tuple(reviews))


def _previewed(proposal: FiledProposal, settings: Settings) -> tuple[Preview | None, str]:
    if proposal.state not in ON_THE_WAY:
        return None, ""
    try:
        return preview(proposal, settings), ""
    except TargetError as error:
        return None, str(error)
