"""A rule's verdict: right windows, right agents, and no claim that the counts do not carry."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from dspy_reflex.clock import now
from dspy_reflex.config import Settings, TargetSettings
from dspy_reflex.errors import StoreError
from dspy_reflex.stages.verifying.verify import LEAST_OUTCOMES, PARTS, judge, verify
from dspy_reflex.store import audit, forget, proposals
from dspy_reflex.store.recurrence import Part, verdicts_of
from dspy_reflex.store.store import Store
from tests.stages.standing import applied, days_after, days_before, happened
from tests.store.events import filed

ALIKE = 1000
"""Simulated rules that change nothing."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Everybody's rules in one folder."""
    return Settings(home=tmp_path / "home", base_dir=tmp_path)


def test_a_rule_after_which_failures_stop_helped(store: Store, settings: Settings) -> None:
    one = applied(store)
    happened(store, days_before(400), failed=20)
    happened(store, days_after(300), failed=1)
    (checked,) = verify(store, settings)
    verdict = checked.verdict
    assert (verdict.verdict, verdict.proposal_id, verdict.look) == ("helped", one.id, 1)
    assert (verdict.before.outcomes, verdict.before.failures) == (400, 20)
    assert (verdict.after.outcomes, verdict.after.failures) == (300, 1)
    assert (verdict.before.per_1000, verdict.after.per_1000) == pytest.approx((50, 1000 / 300))
    assert verdict.change_low < verdict.change_high < 0
    assert verdict.until - verdict.applied_at == verdict.applied_at - verdict.since
    with store.read() as connection:
        assert verdicts_of(connection, one.id) == [verdict]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((400, 20), (300, 1), "helped"),
        ((400, 2), (400, 30), "worse"),
        ((400, 20), (400, 18), "no evidence"),
        ((400, 4), (400, 0), "too few"),
        ((LEAST_OUTCOMES - 1, 20), (400, 0), "too few"),
        ((400, 20), (LEAST_OUTCOMES - 1, 20), "too few"),
        ((400, 0), (400, 0), "too few"),
        ((0, 0), (0, 0), "too few"),
    ],
)
def test_what_counts_say(before: tuple[int, int], after: tuple[int, int], expected: str) -> None:
    assert judge(_even(*before), _even(*after))[0] == expected


def test_with_nothing_before_no_number_of_outcomes_would_do(store: Store, settings: Settings) -> None:
    applied(store)
    happened(store, days_after(40))
    (checked,) = verify(store, settings)
    assert (checked.verdict.verdict, checked.verdict.more_outcomes) == ("too few", None)


def test_it_says_how_many_outcomes_are_missing(store: Store, settings: Settings) -> None:
    """Four in 400 are one in 100: six would have had to be expected, so 600 outcomes."""
    applied(store)
    happened(store, days_before(400), failed=4)
    happened(store, days_after(150))
    (checked,) = verify(store, settings)
    assert checked.verdict.more_outcomes == 450


def test_other_failures_agents_and_times_do_not_count(store: Store, tmp_path: Path) -> None:
    targets = (TargetSettings(agent="bot-*", root=tmp_path), TargetSettings(root=tmp_path))
    settings = Settings(home=tmp_path, base_dir=tmp_path, targets=targets)
    applied(store)  # its target is `*`
    happened(store, days_before(200), failed=10)
    happened(store, days_after(200), failed=10)
    happened(store, days_after(50), failed=50, agent="bot-1")
    happened(store, days_after(50), failed=25, cause="knowledge_gap")
    happened(store, days_after(50), failed=25, symptom="timeout")
    happened(store, [one - timedelta(days=10) for one in days_before(50)], failed=50)
    (checked,) = verify(store, settings)
    verdict = checked.verdict
    assert (verdict.before.outcomes, verdict.before.failures) == (200, 10)
    assert (verdict.after.outcomes, verdict.after.failures) == (300, 10)


def test_no_side_is_longer_than_the_days_asked_for(store: Store, settings: Settings) -> None:
    applied(store)
    happened(store, days_before(100), failed=10)
    happened(store, days_after(100), failed=10)
    (checked,) = verify(store, settings, days=5)
    verdict = checked.verdict
    assert verdict.until - verdict.applied_at == timedelta(days=5)
    assert 49 <= verdict.before.outcomes <= 51
    assert 49 <= verdict.after.outcomes <= 51


def test_days_whose_good_outcomes_were_removed_are_not_looked_at(store: Store, settings: Settings) -> None:
    """Failures behind a rule outlive good outcomes, so that the days before would look worse than they were."""
    kept = settings.model_copy(update={"retention_days": 13})
    applied(store)
    happened(store, days_before(100), failed=10)
    happened(store, days_after(100), failed=10)
    with store.write() as connection:
        forget.prune(connection, now() - timedelta(days=13))
    (checked,) = verify(store, kept)
    assert checked.verdict.applied_at - checked.verdict.since == pytest.approx(
        timedelta(days=3), abs=timedelta(minutes=1)
    )
    assert 29 <= checked.verdict.before.outcomes <= 31
    (checked,) = verify(store, settings.model_copy(update={"retention_days": 9}))
    assert (checked.verdict.verdict, checked.verdict.more_outcomes) == ("too few", None)


def test_what_nobody_diagnosed_counts_against_any_verdict(store: Store, settings: Settings) -> None:
    one = applied(store)
    happened(store, days_before(400), failed=20)
    happened(store, days_after(300))
    happened(store, days_after(100), failed=15, cause=None)
    (checked,) = verify(store, settings)
    assert (checked.verdict.verdict, checked.verdict.after.undiagnosed) == ("no evidence", 15)
    happened(store, days_after(300), failed=100)
    happened(store, days_before(300), failed=100, cause=None)
    (checked,) = verify(store, settings, one.id)
    assert (checked.verdict.verdict, checked.verdict.before.undiagnosed) == ("no evidence", 100)


def test_bursts_count_as_fewer(store: Store, settings: Settings) -> None:
    """Twenty failures within an hour are no twenty witnesses."""
    applied(store)
    happened(store, days_before(400))
    happened(store, [days_before(400)[200] + timedelta(seconds=1 + place) for place in range(20)], failed=20)
    happened(store, days_after(400))
    (checked,) = verify(store, settings)
    assert checked.verdict.burst > 10
    assert checked.verdict.verdict == "too few"


def test_looks_are_counted(store: Store, settings: Settings) -> None:
    one = applied(store)
    assert [verify(store, settings, one.id[:12])[0].verdict.look for _ in range(3)] == [1, 2, 3]


def test_only_a_person_keeps_and_only_what_helped(store: Store, settings: Settings) -> None:
    one = applied(store)
    happened(store, days_before(400), failed=20)
    with pytest.raises(StoreError, match="stays applied and is not kept: too few"):
        verify(store, settings, one.id, keep_by="ada")
    assert verify(store, settings, keep_by="ada")[0].proposal.state == "applied"
    happened(store, days_after(300))
    assert verify(store, settings)[0].proposal.state == "applied"
    for _ in range(2):
        assert verify(store, settings, one.id, keep_by="ada")[0].proposal.state == "kept"
    with store.read() as connection:
        last = audit.trail(connection, one.id)[-1]
        (lesson,) = proposals.lessons_on(connection, "tool_failure", "rate_limit")
    assert (last.actor, last.action, last.reason) == ("ada", "keep", "50.0 before, 0.0 after, per 1,000 outcomes")
    assert (lesson.kind, lesson.proposal_id) == ("kept", one.id)


def test_a_rule_in_no_file_cannot_be_verified(store: Store, settings: Settings) -> None:
    one = filed("evt_1")
    with store.write() as connection:
        proposals.file(connection, one, actor="propose")
    with pytest.raises(StoreError, match="is pending, so it is in no file"):
        verify(store, settings, one.id)
    assert verify(store, settings) == []


@pytest.mark.parametrize("mean_burst", [1, 5])
def test_where_nothing_changed_a_look_errs_in_one_of_twenty_at_most(mean_burst: int) -> None:
    """And where failures fall to a tenth, it mostly sees that."""
    draw = random.Random(mean_burst)
    found = [judge(_side(draw, 0.03, mean_burst), _side(draw, 0.03, mean_burst))[0] for _ in range(ALIKE)]
    assert 0 < sum(one in ("helped", "worse") for one in found) <= ALIKE * 0.05
    fallen = [judge(_side(draw, 0.03, 1), _side(draw, 0.003, 1))[0] for _ in range(ALIKE // 10)]
    assert fallen.count("helped") > 0.9 * len(fallen)


def _even(outcomes: int, failures: int) -> list[Part]:
    """So many outcomes and failures, as evenly as it goes."""
    cuts = [(outcomes * place // PARTS, failures * place // PARTS) for place in range(PARTS + 1)]
    return [Part(to[0] - since[0], to[1] - since[1]) for since, to in pairwise(cuts)]


def _side(draw: random.Random, rate: float, mean_burst: int, outcomes: int = 1000) -> list[Part]:
    """Outcomes of one side, of which this share fails in bursts of a geometric length."""
    failed = [False] * outcomes
    for start in range(outcomes):
        if draw.random() < rate / mean_burst:
            length = 1
            while draw.random() > 1 / mean_burst:
                length += 1
            failed[start : start + length] = [True] * min(length, outcomes - start)
    size = outcomes // PARTS
    return [Part(size, sum(failed[start : start + size])) for start in range(0, outcomes, size)]
