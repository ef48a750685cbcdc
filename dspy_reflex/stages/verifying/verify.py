"""Did a rule help? The failures it is against, per 1,000 outcomes, before and after it was applied.

Both sides are equally long and meet when the rule went into its file. Failures that nobody has diagnosed yet count
against any verdict: as recurrences where it would say that the rule helped, as none where it would say the opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, isfinite

from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.errors import StoreError
from dspy_reflex.ids import new_id
from dspy_reflex.records.review import STANDING, FiledProposal
from dspy_reflex.records.verdict import Finding, Side, Verdict
from dspy_reflex.stages.patching.standing import applied_at
from dspy_reflex.stages.verifying import rates
from dspy_reflex.stages.verifying.rates import Seen
from dspy_reflex.store import outcomes, proposals
from dspy_reflex.store.recurrence import Part, add_verdict, parts, verdicts_of
from dspy_reflex.store.store import Store
from dspy_reflex.targets.where import agents_of

DAYS = 28
"""Longest time looked at on either side: four weeks, so that each day of the week counts alike."""
PARTS = 20
"""Parts of a side that are held against each other to see bursts."""
LEAST_OUTCOMES = 30
"""Fewer outcomes on a side say nothing."""


@dataclass(frozen=True)
class Checked:
    """A rule and what was seen of it."""

    proposal: FiledProposal
    """As it stands afterwards."""
    verdict: Verdict


def verify(
    store: Store, settings: Settings, proposal_id: str | None = None, *, days: int = DAYS, keep_by: str | None = None
) -> list[Checked]:
    """Look at a rule that is in a file, or at all of them, oldest first, and remember what was seen.

    Args:
        store: The store.
        settings: Which agents a rule is for, and how long outcomes are kept.
        proposal_id: The rule's proposal, or the beginning of its id; None is all rules.
        days: Longest time to look at on either side.
        keep_by: Who keeps the rules that helped for good; None keeps none.

    Raises:
        StoreError: There is no such rule in a file, or it was to be kept and did not help.
    """
    with store.read() as connection:
        standing = [proposals.get(connection, proposal_id)] if proposal_id else proposals.find(connection, STANDING)
        checked = [_checked(connection, settings, one, days) for one in standing]
    with store.write() as connection:
        for one in checked:
            add_verdict(connection, one.verdict)
        kept = [_kept(connection, one, keep_by) if keep_by else one for one in checked]
    if proposal_id and keep_by and kept[0].proposal.state != "kept":
        raise StoreError(f"{kept[0].proposal.id} stays applied and is not kept: {kept[0].verdict.verdict}")
    return kept


def judge(before: Sequence[Part], after: Sequence[Part]) -> tuple[Finding, float, float]:
    """What two sides say: the finding, the probability of something as odd by chance, and how far failures come in bursts."""
    burst = rates.burst_of([*_seen(before), *_seen(after)])
    was, was_most = (rates.total(_seen(before, unknown=unknown), burst) for unknown in (False, True))
    is_now, is_most = (rates.total(_seen(after, unknown=unknown), burst) for unknown in (False, True))
    chance = rates.p_value(was, is_now)
    if min(sum(part.outcomes for part in side) for side in (before, after)) < LEAST_OUTCOMES:
        return "too few", chance, burst
    if is_most.share < was.share and rates.p_value(was, is_most) < rates.ALPHA:
        return "helped", chance, burst
    if is_now.share > was_most.share and rates.p_value(was_most, is_now) < rates.ALPHA:
        return "worse", chance, burst
    best = rates.p_value(was, Seen(0, is_now.tries))
    return "no evidence" if best < rates.ALPHA else "too few", chance, burst


def _checked(connection: Connection, settings: Settings, proposal: FiledProposal, days: int) -> Checked:
    if proposal.state not in STANDING:
        raise StoreError(
            f"{proposal.id} is {proposal.state}, so it is in no file; only rules that are in one can be verified"
        )
    at = now()
    since = applied_at(connection, proposal)
    length = _length(since, at, days, settings.retention_days)
    agents = agents_of(
        proposal.agent_id,
        outcomes.everybody(connection),
        settings.targets,
        settings.base_dir,
        outcomes.parents(connection),
    )
    mechanism = (proposal.proposal.root_cause, proposal.symptom)
    found = parts(connection, mechanism, agents, since - length * PARTS, length, 2 * PARTS)
    verdict = _verdict(proposal.id, at, since, length * PARTS, found, len(verdicts_of(connection, proposal.id)) + 1)
    return Checked(proposal, verdict)


def _length(since: datetime, at: datetime, days: int, retention_days: int | None) -> timedelta:
    """Of a part: as long before as after, and not into days whose good outcomes were removed."""
    ago = at - since
    longest = timedelta(days=days)
    if retention_days is not None:
        longest = min(longest, timedelta(days=retention_days) - ago)
    return max(min(ago, longest) // PARTS, timedelta(microseconds=1))


def _verdict(
    proposal_id: str, at: datetime, since: datetime, length: timedelta, found: Sequence[Part], look: int
) -> Verdict:
    before, after = found[:PARTS], found[PARTS:]
    finding, chance, burst = judge(before, after)
    low, high = rates.change(rates.total(_seen(before), burst), rates.total(_seen(after), burst))
    return Verdict(
        id=new_id("verdict"), proposal_id=proposal_id, at=at, verdict=finding, since=since - length,
        applied_at=since, until=since + length, before=_side(before, burst), after=_side(after, burst),
        change_low=1000 * low, change_high=1000 * high, p_value=chance, burst=burst,
        more_outcomes=_missing(before, after, burst) if finding == "too few" else None, look=look,
    )  # fmt: skip


def _missing(before: Sequence[Part], after: Sequence[Part], burst: float) -> int | None:
    """About how many more outcomes it takes after the rule, if as many before it can be looked at."""
    was, is_now = rates.total(_seen(before)), rates.total(_seen(after))
    needed = max(rates.tries_needed(was) * burst, LEAST_OUTCOMES)
    return max(ceil(needed - is_now.tries), 1) if isfinite(needed) else None


def _side(parts: Sequence[Part], burst: float) -> Side:
    seen = rates.total(_seen(parts), burst)
    low, high = rates.interval(seen)
    return Side(
        outcomes=sum(part.outcomes for part in parts), failures=sum(part.failures for part in parts),
        undiagnosed=sum(part.undiagnosed for part in parts), per_1000=1000 * seen.share, low=1000 * low, high=1000 * high,
    )  # fmt: skip


def _seen(parts: Sequence[Part], *, unknown: bool = False) -> list[Seen]:
    """Recurrences by part; with `unknown`, what is not diagnosed is taken for one."""
    return [Seen(part.failures + unknown * part.undiagnosed, part.outcomes) for part in parts]


def _kept(connection: Connection, one: Checked, by: str) -> Checked:
    """A rule that helped, as a kept one; any other as it is."""
    if one.proposal.state == "kept" or one.verdict.verdict != "helped":
        return one
    said = f"{one.verdict.before.per_1000:.1f} before, {one.verdict.after.per_1000:.1f} after, per 1,000 outcomes"
    kept = proposals.move(connection, one.proposal, "kept", actor=by, action="keep", reason=said)
    proposals.learn(connection, kept, "kept", said)
    return Checked(kept, one.verdict)
