"""Diagnosed failures in, proposals out: one for each mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import ModelUnavailableError, ProgramError, RefusalError
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.asking.batch import Batch, Meter
from dspy_reflex.stages.proposing.propose import Group, grouped, merged, propose
from tests.runtime.programs import ScriptedModel, failure, published, rule_answer

FAILURES = [failure(f"failure number {i}", id=f"f{i}") for i in range(6)]
CAUSES = ["leak", "blockage", None, "leak", "leak", "blockage"]
SYMPTOMS = ["timeout", "other", "other", "timeout", "other", "other"]
GROUPS = grouped(FAILURES, CAUSES, SYMPTOMS)
ARTIFACT = published("rule")


def asked(
    model: ScriptedModel, groups: Sequence[Group], rules: Sequence[str] = (), concurrency: int = 1
) -> Batch[Proposal | RefusalError]:
    """The batch of these groups."""
    meter = Meter(model.name, None)
    return propose(RuleProgram(ARTIFACT, model), groups, rules, meter=meter, concurrency=concurrency)


def proposals(batch: Batch[Proposal | RefusalError]) -> list[Proposal]:
    """What the model did propose."""
    return [one for one in batch.done if isinstance(one, Proposal)]


def test_failures_with_one_cause_and_symptom_are_one_group() -> None:
    assert [(group.root_cause, group.symptom) for group in GROUPS] == [
        ("leak", "timeout"),
        ("blockage", "other"),
        ("leak", "other"),
    ]
    assert [[one.id for one in group.failures] for group in GROUPS] == [["f0", "f3"], ["f1", "f5"], ["f4"]]


@given(st.lists(st.tuples(st.sampled_from(["leak", "blockage", None]), st.sampled_from(["timeout", "other"]))))
def test_every_failure_with_a_cause_is_in_one_group(causes: list[tuple[str | None, str]]) -> None:
    failures = [failure(id=f"f{i}") for i in range(len(causes))]
    groups = grouped(failures, [cause for cause, _ in causes], [symptom for _, symptom in causes])
    ids = [one.id for group in groups for one in group.failures]
    assert sorted(ids) == sorted(f"f{i}" for i, (cause, _) in enumerate(causes) if cause)
    assert len({(group.root_cause, group.symptom) for group in groups}) == len(groups)
    assert all(group.failures for group in groups)


def test_failures_that_were_not_diagnosed_are_left_out() -> None:
    """A budget or an outage ended the diagnoses early."""
    assert grouped(FAILURES, CAUSES[:2], SYMPTOMS[:2]) == grouped(FAILURES[:2], CAUSES[:2], SYMPTOMS[:2])


@pytest.mark.parametrize("concurrency", [1, 3])
def test_every_group_gets_its_rule_in_order(concurrency: int) -> None:
    def say(messages: list[Message]) -> str:
        leaks = "[[ ## root_cause ## ]]\nleak" in messages[-1]["content"]
        return rule_answer(rule="Stop the leak." if leaks else "Clear it.")

    model = ScriptedModel(say)
    found = asked(model, GROUPS, ["Be brief."], concurrency=concurrency)
    assert [one.rule for one in proposals(found)] == ["Stop the leak.", "Clear it.", "Stop the leak."]
    assert [one.failure_ids for one in proposals(found)] == [("f0", "f3"), ("f1", "f5"), ("f4",)]
    assert all("- Be brief." in messages[-1]["content"] for messages in model.asked)
    assert (found.calls, found.left, found.stopped) == (3, 0, "")


def test_an_outage_keeps_the_proposals_before_it() -> None:
    def say(messages: list[Message]) -> str | Exception:
        return ModelUnavailableError("down") if "blockage" in messages[-1]["content"] else rule_answer()

    found = asked(ScriptedModel(say), GROUPS, [])
    assert proposals(found)[0].failure_ids == ("f0", "f3")
    assert (found.left, found.stopped) == (3 - len(found.done), "down")


def test_a_refusal_is_a_result_and_costs_nobody_else_theirs() -> None:
    def say(messages: list[Message]) -> str:
        return rule_answer(rule="x" * 301) if "blockage" in messages[-1]["content"] else rule_answer()

    found = asked(ScriptedModel(say), GROUPS, [])
    assert [type(one) for one in found.done] == [Proposal, RefusalError, Proposal]
    assert "proposed a rule of 301 characters" in str(found.done[1])
    assert (found.calls, found.left, found.stopped) == (3, 0, "")


def test_an_unknown_cause_goes_to_the_caller() -> None:
    with pytest.raises(ProgramError, match="knows no 'rust'"):
        asked(ScriptedModel(rule_answer()), [Group("rust", "other", (FAILURES[0],))], [])


def test_no_groups_are_no_proposals() -> None:
    assert asked(ScriptedModel(rule_answer()), [], []).done == ()
    assert grouped([], [], []) == []


def test_groups_that_got_the_same_rule_become_one_proposal() -> None:
    """Two symptoms of one cause, one rule: nobody has to read it twice."""
    one, other, third = proposals(asked(ScriptedModel(rule_answer()), GROUPS))
    assert (one.id, one.rule) == (third.id, third.rule)
    whole = merged([one, other, third, one])
    assert [each.failure_ids for each in whole] == [("f0", "f3", "f4"), ("f1", "f5")]
    assert merged([]) == []


def test_what_was_spent_is_added_to_what_the_diagnoses_spent() -> None:
    meter = Meter("offline/1", None)
    for calls in (3, 6):
        program = RuleProgram(ARTIFACT, ScriptedModel(rule_answer(), tokens=(10, 1)))
        assert propose(program, GROUPS, [], meter=meter).calls == meter.calls == calls
    assert (meter.input_tokens, meter.output_tokens) == (60, 6)
