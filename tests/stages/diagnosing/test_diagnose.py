"""Failures in, diagnoses out."""

from __future__ import annotations

import pytest

from dspy_reflex.errors import ConfigError, ModelUnavailableError
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.lm.offline import OfflineModel
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.diagnosing.diagnose import diagnose
from tests.runtime.programs import ScriptedModel, cause_answer, failure, published

FAILURES = [failure(f"failure number {i}", id=f"f{i}") for i in range(12)]
PROGRAM = CauseProgram(published(), OfflineModel())


@pytest.mark.parametrize("concurrency", [1, 4])
def test_every_failure_gets_its_diagnosis_in_order(concurrency: int) -> None:
    found = diagnose(PROGRAM, FAILURES, concurrency=concurrency)
    assert found.done == tuple(map(PROGRAM, FAILURES))
    assert [one.failure_id for one in found.done] == [one.id for one in FAILURES]
    assert (found.left, found.stopped, found.calls, found.cost_usd) == (0, "", 12, 0.0)
    assert found.input_tokens > found.output_tokens > 0


def test_refusals_and_unparsable_answers_are_diagnoses_and_do_not_end_the_batch() -> None:
    def say(messages: list[Message]) -> str:
        return "I cannot say." if "number 3" in messages[-1]["content"] else cause_answer()

    found = diagnose(CauseProgram(published(), ScriptedModel(say)), FAILURES)
    assert [one.root_cause for one in found.done] == ["leak"] * 3 + [None] + ["leak"] * 8
    assert found.done[3].needs_review
    assert found.calls == 12


def test_an_outage_keeps_the_diagnoses_before_it() -> None:
    def say(messages: list[Message]) -> str | Exception:
        return ModelUnavailableError("down") if "number 5" in messages[-1]["content"] else cause_answer()

    found = diagnose(CauseProgram(published(), ScriptedModel(say)), FAILURES)
    assert [one.failure_id for one in found.done][:5] == [one.id for one in FAILURES[:5]]
    assert "f5" not in [one.failure_id for one in found.done]
    assert (found.left, found.stopped) == (12 - len(found.done), "down")


def test_a_budget_for_a_model_without_a_price_is_refused_before_asking() -> None:
    model = ScriptedModel(cause_answer(), name="openai/nobody-knows")
    with pytest.raises(ConfigError):
        diagnose(CauseProgram(published(), model), FAILURES, max_usd=1.0)
    assert model.asked == []


def test_progress_is_told_and_nothing_is_nothing() -> None:
    ticks = list[int]()
    diagnose(PROGRAM, FAILURES[:3], tick=ticks.append)
    assert ticks == [1, 2, 3]
    assert diagnose(PROGRAM, []).done == ()
