"""Taking a prompt apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from dspy_reflex.optimize.publish import load_module
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import cause_inputs, rule_inputs
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.lm.offline.prompt import Task, read_case, read_task, write
from dspy_reflex.runtime.parse import parse
from dspy_reflex.runtime.render import render
from dspy_reflex.taxonomies.load import load_taxonomy, presets
from tests.runtime.lm.offline.prompts import LEARNT, as_json, with_demos
from tests.runtime.programs import BARE, HOUSE, any_text, hostile_text, published, raw_failures

INPUTS = cause_inputs({"task": "Book it.", "actual_outcome": "Nothing\n\ncame.", "context": {"log": ["a", "b"]}})
BOOTSTRAPPED = {"reasoning": "r", "evidence": "e\nf", "root_cause": "leak", "second": "none", "confidence": 0.5}
ENDS = {"completed": ""}
"""The mark under an answer in the chat format; nothing follows it."""
TEACHING = published(demos=[INPUTS | {"root_cause": "leak"}, INPUTS | BOOTSTRAPPED | {"augmented": True}])


def prompt(program: Artifact, form: str, inputs: dict[str, str] = INPUTS) -> list[Message]:
    """The prompt in one of DSPy's two formats."""
    return render(program, inputs) if form == "chat" else as_json(program, inputs)


@pytest.fixture(params=["chat", "json"])
def form(request: pytest.FixtureRequest) -> str:
    """Either format."""
    return request.param


def test_what_is_asked_is_read(form: str) -> None:
    task = read_task(prompt(TEACHING, form))
    assert list(task.outputs) == ["reasoning", "evidence", "root_cause", "second", "confidence"]
    assert task.outputs["confidence"] == "float"
    assert task.choices == {"root_cause": HOUSE.labels, "second": (*HOUSE.labels, "none")}
    assert task.as_json is (form == "json")


@pytest.mark.parametrize("name", presets())
def test_every_label_is_read(form: str, name: str) -> None:
    taxonomy = load_taxonomy(name)
    assert read_task(prompt(published(taxonomy=taxonomy), form)).choices["root_cause"] == taxonomy.labels


def test_the_instructions_are_read_as_they_were_written(form: str) -> None:
    """DSPy indents them; indentation apart, every line is there."""
    written = [line.strip() for line in TEACHING.data["instructions"].splitlines()]
    assert read_task(prompt(TEACHING, form)).instructions.splitlines()[: len(written)] == written


def test_demos_are_read_with_what_was_supplied_and_no_more(form: str) -> None:
    labelled, bootstrapped = sorted(read_task(prompt(TEACHING, form)).demos, key=lambda demo: len(demo.outputs))
    assert dict(labelled.outputs) | ENDS == {"root_cause": "leak"} | ENDS
    assert dict(bootstrapped.outputs) | ENDS == {name: str(value) for name, value in BOOTSTRAPPED.items()} | ENDS
    assert dict(labelled.inputs)["actual_outcome"] == dict(bootstrapped.inputs)["actual_outcome"] == "Nothing\n\ncame."


def test_the_case_is_read_without_the_reminder_of_the_form(form: str) -> None:
    assert dict(read_case(prompt(TEACHING, form))) == INPUTS


@given(raw_failures)
def test_the_case_is_read_as_it_was_put_in(failure: dict[str, Any]) -> None:
    """White space at the ends of lines of text apart."""
    inputs = cause_inputs(failure)
    assert dict(read_case(prompt(TEACHING, "chat", inputs))) == {name: text.strip() for name, text in inputs.items()}


def test_the_rule_program_is_read_in_either_form(form: str) -> None:
    inputs = rule_inputs([{"task": "t", "actual_outcome": "a"}], "leak", ["Be brief."])
    messages = prompt(published("rule"), form, inputs)
    assert list(read_task(messages).outputs) == ["component", "rule", "rationale"]
    assert dict(read_case(messages)) == inputs


@pytest.mark.parametrize("text", ["plain", "two\nlines", '"quoted" and \\', "\u00fc \U0001f600", ""])
def test_what_is_written_is_what_dspy_reads(form: str, text: str) -> None:
    import dspy

    program = published()
    fields = {"reasoning": text, "evidence": "e", "root_cause": "leak", "second": "none", "confidence": "0.250"}
    written = write(read_task(prompt(program, form)), fields)
    signature = load_module(program).predict.signature
    adapter = dspy.ChatAdapter() if form == "chat" else dspy.JSONAdapter()
    assert adapter.parse(signature, written) == {**fields, "confidence": 0.25}
    if form == "chat":
        assert parse(program.data["outputs"], written) == {**fields, "confidence": 0.25}


def test_a_bare_chat_is_an_instruction() -> None:
    task = read_task([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}])
    assert task == Task("Be brief.", {}, {}, (), False)


def test_no_messages_are_no_case() -> None:
    assert read_case([]) == {}


def test_a_question_without_an_answer_is_no_demo() -> None:
    messages = render(with_demos(LEARNT, BARE), INPUTS)
    assert len(read_task(messages).demos) == len(LEARNT)
    assert len(read_task([*messages[:2], messages[-1]]).demos) == 0


@given(hostile_text, any_text)
def test_a_demo_may_say_anything(question: str, reply: str) -> None:
    said = [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
    read_task([*said, {"role": "assistant", "content": json.dumps({"a": [reply]})}, {"role": "user", "content": ""}])
