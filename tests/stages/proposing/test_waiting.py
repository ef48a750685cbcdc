"""Which failures wait for a rule."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.ids import new_id
from dspy_reflex.stages.proposing.waiting import find_waiting
from dspy_reflex.stages.reviewing import review
from dspy_reflex.stages.reviewing.review import Act
from dspy_reflex.store.store import Store
from tests.stages.loop import asked, known, one_filed, settings_for


@pytest.fixture
def rules(tmp_path: Path) -> Settings:
    """Rule files in a folder of their own."""
    return settings_for(tmp_path)


def groups(store: Store, settings: Settings, **options: Any) -> list[tuple[str, str, str, int]]:
    """Target, cause, symptom and size of what waits."""
    found = find_waiting(store, settings, **options)
    return [(*one.mechanism[:3], len(one.failures)) for one in found.waiting]


def test_failures_are_grouped_by_target_cause_and_symptom(store: Store, tmp_path: Path) -> None:
    known(store, 2)
    known(store, 2, said={"symptom": "auth"})
    known(store, 2, "blockage")
    known(store, 2, agent_id="support-1")
    known(store, 2, agent_id="support-2")
    settings = settings_for(tmp_path, targets=[{"agent": "support-*", "root": tmp_path}])
    assert groups(store, settings) == [
        ("support-*", "leak", "timeout", 4),
        ("*", "leak", "timeout", 2),
        ("*", "leak", "auth", 2),
        ("*", "blockage", "timeout", 2),
    ]


def test_the_worst_and_most_frequent_mechanisms_come_first(store: Store, rules: Settings) -> None:
    """Where the money does not reach for all."""
    for cause, n, severity in (("leak", 2, "low"), ("blockage", 3, "low"), ("short_circuit", 1, "critical")):
        known(store, n, cause, severity=severity)
    assert [cause for _, cause, *_ in groups(store, rules)] == ["short_circuit", "blockage", "leak"]


def test_children_share_the_rules_of_the_agent_they_work_for(store: Store, tmp_path: Path) -> None:
    known(store, 1, agent_id="boss")
    known(store, 1, agent_id="helper", parent_agent_id="boss")
    target = {"agent": "boss", "with_children": True, "root": tmp_path}
    assert groups(store, settings_for(tmp_path, targets=[target])) == [("boss", "leak", "timeout", 2)]
    assert groups(store, settings_for(tmp_path, targets=[target | {"with_children": False}])) == []


def test_too_few_failures_are_said_to_be_too_few(store: Store, rules: Settings) -> None:
    known(store, 1)
    (skipped,) = find_waiting(store, rules).skipped
    assert (skipped.root_cause, skipped.symptom, skipped.failures) == ("leak", "timeout", 1)
    assert skipped.why == "too few; a rule takes 2"


def test_one_critical_failure_is_enough(store: Store, rules: Settings) -> None:
    known(store, 1, severity="critical")
    (one,) = find_waiting(store, rules).waiting
    assert one.severity == "critical"


def test_unsure_diagnoses_count_only_when_asked_for(store: Store, rules: Settings) -> None:
    known(store, 2, said={"needs_review": True})
    found = find_waiting(store, rules)
    assert (found.waiting, found.unsure) == ((), 2)
    assert groups(store, rules, include_unsure=True) == [("*", "leak", "timeout", 2)]


def test_failures_without_a_cause_never_count(store: Store, rules: Settings) -> None:
    known(store, 3, None)
    assert groups(store, rules, include_unsure=True) == []


def test_old_failures_and_those_of_others_can_be_left_out(store: Store, rules: Settings) -> None:
    known(store, 2, at=now() - timedelta(days=40))
    known(store, 3, agent_id="other")
    assert groups(store, rules, since=now() - timedelta(days=30)) == [("*", "leak", "timeout", 3)]
    assert groups(store, rules, agents=["veya"]) == [("*", "leak", "timeout", 2)]


def test_the_worst_failures_come_first_and_of_those_the_newest(store: Store, rules: Settings) -> None:
    (old,) = known(store, 1, severity="high", at=now() - timedelta(hours=2))
    (mild,) = known(store, 1, severity="low")
    (new,) = known(store, 1, severity="high", at=now() - timedelta(hours=1))
    (one,) = find_waiting(store, rules).waiting
    assert [each.failure_id for each in one.failures] == [new, old, mild]
    assert (one.severity, round(one.confidence, 6)) == ("high", 0.9)


def test_repeats_without_a_symptom_are_a_mechanism_of_their_own(store: Store, rules: Settings) -> None:
    """`other` says nothing, so the masked text does; what is too little for that stays together."""
    for text, n in (("the same twice", 2), ("once", 1), ("once as well", 1)):
        known(store, n, said={"symptom": "other", "signature": text})
    found = find_waiting(store, rules)
    assert [(one.mechanism.signature, len(one.failures)) for one in found.waiting] == [("the same twice", 2), ("", 2)]


def test_what_a_rule_answers_waits_no_more(store: Store, rules: Settings) -> None:
    filed = one_filed(store, rules)
    known(store, 3)
    found = find_waiting(store, rules)
    assert found.waiting == ()
    (skipped,) = found.skipped
    assert (skipped.failures, skipped.why) == (5, f"{filed.id} is pending")
    review.approve(store, filed.id, Act("ann"))
    assert [one.why for one in find_waiting(store, rules).skipped] == [f"{filed.id} is approved"]


def test_a_rejection_counts_for_what_happened_before_it(store: Store, rules: Settings) -> None:
    """Nobody is asked again about the same failures; about new ones they are."""
    filed = one_filed(store, rules)
    review.reject(store, filed.id, Act("ann", "too vague"))
    found = find_waiting(store, rules)
    assert [one.why for one in found.skipped] == [f"{filed.id} was rejected (too vague)"]
    assert found.waiting == ()
    known(store, 2)
    assert groups(store, rules) == [("*", "leak", "timeout", 2)]


def test_of_failures_without_a_symptom_only_the_like_are_answered(store: Store, rules: Settings) -> None:
    known(store, 2, said={"symptom": "other", "signature": "this"})
    assert len(asked(store, rules).filed) == 1
    known(store, 1, said={"symptom": "other", "signature": "this"})
    known(store, 2, said={"symptom": "other", "signature": "that"})
    found = find_waiting(store, rules)
    assert [(one.mechanism.signature, len(one.failures)) for one in found.waiting] == [("that", 2)]
    assert [one.failures for one in found.skipped] == [3]


CASES = st.lists(
    st.tuples(
        st.sampled_from(["leak", "blockage", None]), st.sampled_from(["timeout", "other"]), st.sampled_from("ab"),
        st.booleans(),
    ),
    max_size=8,
)  # fmt: skip


def test_every_failure_is_counted_once(tmp_path: Path) -> None:
    """It waits, is skipped, is unsure, or has no cause."""
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:

        @settings(max_examples=20)
        @given(cases=CASES, unsure=st.booleans())
        def check(cases: list[Any], unsure: bool) -> None:
            agent = new_id("agent")
            for cause, symptom, signature, shaky in cases:
                said = {"symptom": symptom, "signature": signature, "needs_review": shaky}
                known(store, 1, cause, agent_id=agent, said=said)
            found = find_waiting(store, settings_for(tmp_path), agents=[agent], include_unsure=unsure)
            waiting = [each.failure_id for one in found.waiting for each in one.failures]
            assert len(waiting) == len(set(waiting))
            counted = len(waiting) + sum(one.failures for one in found.skipped) + found.unsure
            assert counted == sum(cause is not None for cause, *_ in cases)

        check()
