"""One question to one program."""

from __future__ import annotations

import asyncio

import pytest

from dspy_reflex.errors import ModelUnavailableError, RenderError
from dspy_reflex.runtime.answer import Answer, aask, ask
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.lm.model import LanguageModel
from dspy_reflex.runtime.render import render
from tests.runtime.programs import ScriptedModel, cause_answer, published

PROGRAM = published()
VALUES = cause_inputs({"task": "t", "actual_outcome": "a"})


def asked(model: LanguageModel) -> Answer:
    """The answer, the same either way."""
    answer, other = ask(PROGRAM, model, VALUES), asyncio.run(aask(PROGRAM, model, VALUES))
    assert (answer.fields, answer.problem, answer.detail) == (other.fields, other.problem, other.detail)
    assert (answer.input_tokens, answer.output_tokens) == (other.input_tokens, other.output_tokens)
    return answer


def test_the_rendered_prompt_is_what_the_model_gets() -> None:
    model = ScriptedModel(cause_answer())
    asked(model)
    assert model.asked == [render(PROGRAM, VALUES)] * 2


def test_fields_and_cost_come_back() -> None:
    answer = asked(ScriptedModel(cause_answer(), tokens=(11, 7)))
    assert answer.fields is not None
    assert answer.fields["root_cause"] == "leak"
    assert (answer.problem, answer.detail, answer.input_tokens, answer.output_tokens) == ("", "", 11, 7)
    assert answer.seconds >= 0


def test_a_refusal_is_data_whatever_its_text_says() -> None:
    answer = asked(ScriptedModel(cause_answer(), finish="refusal", tokens=(11, 0)))
    assert (answer.fields, answer.problem, answer.input_tokens) == (None, "refusal", 11)
    assert answer.detail


@pytest.mark.parametrize("text", ["", "I think it is a leak.", cause_answer(confidence="high"), cause_answer()[:60]])
def test_an_unparsable_answer_is_data_and_says_why(text: str) -> None:
    answer = asked(ScriptedModel(text, finish="length", tokens=(11, 7)))
    assert (answer.fields, answer.problem, answer.output_tokens) == (None, "unparsable", 7)
    assert "field" in answer.detail


def test_an_outage_is_an_exception() -> None:
    model = ScriptedModel(lambda _: ModelUnavailableError("down"))
    with pytest.raises(ModelUnavailableError):
        ask(PROGRAM, model, VALUES)
    with pytest.raises(ModelUnavailableError):
        asyncio.run(aask(PROGRAM, model, VALUES))


def test_nothing_is_asked_without_all_inputs() -> None:
    model = ScriptedModel(cause_answer())
    with pytest.raises(RenderError):
        ask(PROGRAM, model, {"task": "t"})
    assert model.asked == []


def test_half_characters_are_replaced_and_pairs_of_them_joined() -> None:
    """JSON can escape them, and nothing can store them."""
    answer = asked(ScriptedModel(cause_answer(reasoning="half \ud800, whole \ud83d\ude00")))
    assert answer.fields is not None
    assert answer.fields["reasoning"] == "half \ufffd, whole \U0001f600"
