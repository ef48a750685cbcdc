"""Diagnosed failures in, proposals out: one for each mechanism."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import ModelUnavailableError, ProgramError, RefusalError
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.propose import Group, grouped, propose
from tests.runtime.programs import HOUSE, ScriptedModel, failure, published, rule_answer

FAILURES = [failure(f"failure number {i}", id=f"f{i}") for i in range(6)]
CAUSES: list[tuple[str | None, str]] = [
    ("leak", "timeout"),
    ("blockage", "other"),
    (None, "other"),
    ("leak", "timeout"),
    ("leak", "other"),
    ("blockage", "other"),
]
ARTIFACT = published("rule")


def test_failures_with_one_cause_and_symptom_are_one_group() -> None:
    found = grouped(FAILURES, CAUSES)
    assert [(group.root_cause, group.symptom) for group in found] == [
        ("leak", "timeout"),
        ("blockage", "other"),
        ("leak", "other"),
    ]
    assert [[one.id for one in group.failures] for group in found] == [["f0", "f3"], ["f1", "f5"], ["f4"]]


@given(st.lists(st.tuples(st.sampled_from(["leak", "blockage", None]), st.sampled_from(["timeout", "other"]))))
def test_every_failure_with_a_cause_is_in_one_group(causes: list[tuple[str | None, str]]) -> None:
    failures = [failure(id=f"f{i}") for i in range(len(causes))]
    groups = grouped(failures, causes)
    ids = [one.id for group in groups for one in group.failures]
    assert sorted(ids) == sorted(f"f{i}" for i, (cause, _) in enumerate(causes) if cause)
    assert len({(group.root_cause, group.symptom) for group in groups}) == len(groups)
    assert all(group.failures for group in groups)


def test_a_cause_for_each_failure_is_needed() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        grouped(FAILURES, CAUSES[:2])


@pytest.mark.parametrize("concurrency", [1, 3])
def test_every_group_gets_its_rule_in_order(concurrency: int) -> None:
    def say(messages: list[Message]) -> str:
        asked = messages[-1]["content"]
        return rule_answer(rule="Stop the leak." if "[[ ## root_cause ## ]]\nleak" in asked else "Clear it.")

    model = ScriptedModel(say)
    found = propose(RuleProgram(ARTIFACT, model), grouped(FAILURES, CAUSES), ["Be brief."], concurrency=concurrency)
    assert [one.rule for one in found.done] == ["Stop the leak.", "Clear it.", "Stop the leak."]
    assert [one.failure_ids for one in found.done] == [("f0", "f3"), ("f1", "f5"), ("f4",)]
    assert all("- Be brief." in asked[-1]["content"] for asked in model.asked)
    assert (found.calls, found.left, found.stopped) == (3, 0, "")


def test_an_outage_keeps_the_proposals_before_it() -> None:
    def say(messages: list[Message]) -> str | Exception:
        return ModelUnavailableError("down") if "blockage" in messages[-1]["content"] else rule_answer()

    found = propose(RuleProgram(ARTIFACT, ScriptedModel(say)), grouped(FAILURES, CAUSES), [])
    assert found.done[0].failure_ids == ("f0", "f3")
    assert (found.left, found.stopped) == (3 - len(found.done), "down")


def test_a_refusal_and_an_unknown_cause_go_to_the_caller() -> None:
    program = RuleProgram(ARTIFACT, ScriptedModel("I cannot.", finish="refusal"))
    with pytest.raises(RefusalError, match="proposed no rule"):
        propose(program, grouped(FAILURES, CAUSES), [])
    with pytest.raises(ProgramError, match="knows no 'rust'"):
        propose(program, [Group("rust", "other", (FAILURES[0],))], [])


def test_no_groups_are_no_proposals() -> None:
    assert propose(RuleProgram(ARTIFACT, ScriptedModel(rule_answer())), [], []).done == ()
    assert grouped([], []) == []
    assert HOUSE.labels[0] == "leak"
