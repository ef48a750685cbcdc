"""What waits for a rule: diagnosed failures by target and mechanism, without those that a rule answers already.

A failure's mechanism is its root cause and its symptom. Where the symptom is `other`, which says nothing, repeats of one
failure, equal in their masked text, are a mechanism of their own as soon as there are enough of them; the others of that
cause stay together. A failure is answered if a proposal of its target that is not settled is against its mechanism, or
if one was rejected or reverted after it happened: what a person decided about, they are not asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, get_args

from sqlalchemy import Connection

from dspy_reflex.config import ProposeSettings, Settings, TargetSettings
from dspy_reflex.records.record import Severity
from dspy_reflex.records.review import SETTLED
from dspy_reflex.store import outcomes, proposals
from dspy_reflex.store.diagnoses import Said, count_silent, said
from dspy_reflex.store.store import Store
from dspy_reflex.targets.where import target_of

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the least to the worst."""
ANY_SYMPTOM = "other"
FOR_EVER = datetime.max.replace(tzinfo=UTC)


class Mechanism(NamedTuple):
    """What one rule could be against."""

    agent_id: str
    """The target's pattern."""
    root_cause: str
    symptom: str
    signature: str = ""
    """Masked text, where the symptom says nothing."""


Groups = dict[Mechanism, list[Said]]
Answers = Mapping[Mechanism, tuple[datetime, str]]
"""Until when failures of a mechanism are answered, and by what."""


@dataclass(frozen=True)
class Waiting:
    """Failures of one mechanism that no rule answers."""

    target: TargetSettings
    mechanism: Mechanism
    failures: tuple[Said, ...]
    """The worst first, of equally bad ones the newest."""

    @property
    def severity(self) -> Severity:
        """The worst of its failures."""
        return self.failures[0].severity

    @property
    def confidence(self) -> float:
        """Mean confidence of the diagnoses."""
        return sum(one.confidence for one in self.failures) / len(self.failures)

    def skipped(self, why: str) -> Skipped:
        """That they get no rule."""
        return _skipped(self.mechanism, len(self.failures), why)


@dataclass(frozen=True)
class Skipped:
    """Failures that get no rule, and why."""

    agent_id: str
    root_cause: str
    symptom: str
    failures: int
    why: str


@dataclass(frozen=True)
class Found:
    """Everything that was looked at."""

    waiting: tuple[Waiting, ...]
    """The worst first, of equally bad ones the most frequent: a budget goes as far as it does."""
    skipped: tuple[Skipped, ...]
    unsure: int
    """Failures left out because a person should look at their diagnosis first."""
    undiagnosed: int
    """Failures of which nothing is said yet."""


def find_waiting(
    store: Store,
    settings: Settings,
    *,
    since: datetime | None = None,
    agents: Sequence[str] | None = None,
    include_unsure: bool = False,
) -> Found:
    """Group what was diagnosed of failures since then, and leave out what is answered or too little."""
    with store.read() as connection:
        known = [one for one in said(connection, since=since, agents=agents) if one.root_cause]
        answers = answers_in(connection)
        parents = outcomes.parents(connection)
        undiagnosed = count_silent(connection, since=since, agents=agents)
    sure = [one for one in known if include_unsure or not one.needs_review]
    targets = {
        agent: target_of(agent, settings.targets, settings.base_dir, parents)
        for agent in dict.fromkeys(one.agent_id for one in sure)
    }
    open_ones, answered = _told_apart(sure, targets, answers)
    enough, few = _by_size(_pooled(open_ones, settings.propose), settings.propose)
    waiting = [Waiting(targets[failures[0].agent_id], of, worst_first(failures)) for of, failures in enough.items()]
    waiting.sort(key=lambda one: (SEVERITIES.index(one.severity), len(one.failures)), reverse=True)
    return Found(tuple(waiting), (*answered, *few), len(known) - len(sure), undiagnosed)


def answers_in(connection: Connection) -> Answers:
    """What the rules on their way, in a file or taken back answer."""
    rules = proposals.find(connection)
    behind = proposals.mechanisms(connection)
    lessons = {one.proposal_id: one for one in proposals.lessons_of(connection, [rule.agent_id for rule in rules])}
    found: dict[Mechanism, tuple[datetime, str]] = {}
    for rule in rules:
        until, why = FOR_EVER, f"{rule.id} is {rule.state}"
        if rule.state in SETTLED:
            lesson = lessons.get(rule.id)
            until = lesson.at if lesson else rule.at
            why = f"{rule.id} was {rule.state}" + (f" ({lesson.reason})" if lesson and lesson.reason else "")
        for symptom, signature in behind.get(rule.id, {(rule.symptom, "")}):
            of = _mechanism(rule.agent_id, rule.proposal.root_cause, symptom, signature)
            found[of] = max(found.get(of, (until, why)), (until, why))
    return found


def answered_by(failure: Said, agent_id: str, answers: Answers) -> str:
    """What answers a failure of a target; empty if nothing does."""
    until, why = answers.get(_mechanism_of(failure, agent_id), (failure.at, ""))
    return why if failure.at <= until else ""


def _mechanism(agent_id: str, root_cause: str, symptom: str, signature: str) -> Mechanism:
    return Mechanism(agent_id, root_cause, symptom, signature if symptom == ANY_SYMPTOM else "")


def _mechanism_of(failure: Said, agent_id: str) -> Mechanism:
    return _mechanism(agent_id, failure.root_cause or "", failure.symptom, failure.signature)


def _told_apart(
    failures: Sequence[Said], targets: Mapping[str, TargetSettings], answers: Answers
) -> tuple[Groups, list[Skipped]]:
    """Failures that nothing answers, by mechanism, and the others, counted."""
    groups: Groups = {}
    answered: Counter[tuple[Mechanism, str]] = Counter()
    for one in failures:
        agent = targets[one.agent_id].agent
        of = _mechanism_of(one, agent)
        if why := answered_by(one, agent, answers):
            answered[of._replace(signature=""), why] += 1
        else:
            groups.setdefault(of, []).append(one)
    return groups, [_skipped(of, n, why) for (of, why), n in answered.items()]


def _pooled(groups: Groups, settings: ProposeSettings) -> Groups:
    """The same groups, but repeats of one failure that are too few stay with the others of their cause."""
    pooled: Groups = {}
    for of, failures in groups.items():
        few = of.signature and len(failures) < _least(failures, settings)
        pooled.setdefault(of._replace(signature="") if few else of, []).extend(failures)
    return pooled


def _by_size(groups: Groups, settings: ProposeSettings) -> tuple[Groups, list[Skipped]]:
    """Groups that are worth a rule, and the others."""
    least = {of: _least(failures, settings) for of, failures in groups.items()}
    enough = {of: failures for of, failures in groups.items() if len(failures) >= least[of]}
    few = [
        _skipped(of, len(failures), f"too few; a rule takes {least[of]}")
        for of, failures in groups.items()
        if of not in enough
    ]
    return enough, few


def _least(failures: Sequence[Said], settings: ProposeSettings) -> int:
    critical = any(one.severity == "critical" for one in failures)
    return settings.min_failures_critical if critical else settings.min_failures


def worst_first(failures: Sequence[Said]) -> tuple[Said, ...]:
    """The worst first, of equally bad ones the newest."""
    return tuple(sorted(failures, key=lambda one: (SEVERITIES.index(one.severity), one.at), reverse=True))


def _skipped(of: Mechanism, failures: int, why: str) -> Skipped:
    return Skipped(of.agent_id, of.root_cause, of.symptom, failures, why)
