"""A store in which a rule has been in its file for some days, with outcomes before and after."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from dspy_reflex.clock import now
from dspy_reflex.ids import new_id
from dspy_reflex.records.review import FiledProposal, Patch
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store
from dspy_reflex.targets.edit import add, to_json
from dspy_reflex.targets.rule import RuleLine
from tests.store.events import diagnosed, event, filed, good

DAYS = 10
"""How long the rule has been in its file."""


def applied(store: Store, *, ago: timedelta = timedelta(days=DAYS)) -> FiledProposal:
    """A rule in its file since then, as far as the store knows."""
    one = filed("evt_1")
    added = add(RuleLine(one.id, one.rule, now().date()))
    patch = Patch(
        id=new_id("patch"), proposal_id=one.id, at=now() - ago, by="ada", action="apply", file=one.file,
        before_sha256="0" * 64, after_sha256="1" * 64, body={"name": "TOOLS.md", "edits": to_json([added])},
    )  # fmt: skip
    with store.write() as connection:
        proposals.file(connection, one, actor="propose")
        approved = proposals.move(connection, one, "approved", actor="ada", action="approve")
        proposals.add_patch(connection, patch)
        return proposals.move(connection, approved, "applied", actor="ada", action="apply")


def happened(
    store: Store,
    at: Iterable[datetime],
    *,
    agent: str = "veya",
    failed: int = 0,
    cause: str | None = "tool_failure",
    symptom: str = "rate_limit",
) -> None:
    """Outcomes of an agent at these times; evenly spread, `failed` of them are failures, undiagnosed without a cause."""
    times = list(at)
    bad = {int(place * len(times) / failed) for place in range(failed)}
    told = [(event if place in bad else good)(at=micros(one), agent_id=agent) for place, one in enumerate(times)]
    with store.write() as connection:
        outcomes.take_in(connection, told)
        failures = outcomes.failures_of(connection, [one["id"] for one in told])
        if cause:
            diagnoses.add(connection, [diagnosed(one, cause, symptom=symptom) for one in failures])


def days_before(number: int) -> list[datetime]:
    """So many times, evenly over the days before the rule came."""
    return _spread(now() - timedelta(days=2 * DAYS), number)


def days_after(number: int) -> list[datetime]:
    """So many times, evenly over the days since the rule came."""
    return _spread(now() - timedelta(days=DAYS), number)


def _spread(start: datetime, number: int) -> list[datetime]:
    step = timedelta(days=DAYS) / (number + 1)
    return [start + step * (place + 1) for place in range(number)]
