"""The learner as the model that is told how answers did: GEPA's and SIMBA's questions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.lm.offline import answer
from dspy_reflex.runtime.lm.offline.cues import read_sheets
from dspy_reflex.runtime.lm.offline.reflect import advise, reflect
from dspy_reflex.runtime.lm.offline.rulebook import read_book
from dspy_reflex.taxonomies.guide import cause_guide, remedies_text
from tests.runtime.lm.offline.prompts import CASES, NEW, Case, accuracy, with_sheet
from tests.runtime.programs import BARE, HOUSE, any_text

GUIDE = remedies_text(HOUSE)
RULES = [
    ({"failures": inputs["actual_outcome"], "root_cause": label}, f"Mind the {label} once, {number}.")
    for number, (inputs, label) in enumerate(CASES)
]


def judged(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Answers with feedback as GEPA shows them; every one of them was the first label."""
    told = {"root_cause": HOUSE.labels[0], "confidence": 0.3}
    return [
        {"Inputs": inputs, "Generated Outputs": told, "Feedback": f"root_cause, as labelled: {label}\nWell."}
        for inputs, label in cases
    ]


def judged_rules(number: int) -> list[dict[str, Any]]:
    """Rules with feedback."""
    return [
        {
            "Inputs": inputs,
            "Generated Outputs": {"rule": "Do."},
            "Feedback": f"component, as labelled: TOOLS\nrule, as labelled: {rule}",
        }
        for inputs, rule in RULES[:number]
    ]


def reflected(current: str, shown: Any) -> str:
    """A new instruction."""
    return reflect({"current_instruction": current, "examples_with_feedback": json.dumps(shown)})


def test_what_feedback_says_teaches() -> None:
    """The instruction stays as it is; what the labels teach stands under it."""
    guide = cause_guide(BARE)
    written = reflected(guide, judged(CASES))
    assert written.startswith(f"{guide}\n\n")
    (sheet,) = read_sheets(written)
    assert set(sheet.weights) == set(HOUSE.labels)
    assert accuracy(with_sheet(written.removeprefix(guide)), NEW) >= 0.75


def test_each_reflection_adds_to_those_before_it() -> None:
    """A sheet of its own, so that nothing that was learnt is lost."""
    once = reflected("Name it.", judged(CASES[:12]))
    twice = reflected(once, judged(CASES[12:]))
    assert twice.startswith(once)
    assert len(read_sheets(twice)) == 2


def test_rules_that_people_wrote_become_a_book_once() -> None:
    """Under the input that the guide defines; a rule that stands there is not repeated."""
    once = reflected(GUIDE, judged_rules(4))
    assert [entry.rule for entry in read_book(once)] == [rule for _, rule in RULES[:4]]
    assert {entry.key for entry in read_book(once)} <= set(HOUSE.labels)
    assert {entry.place for entry in read_book(once)} == {"TOOLS"}
    again = reflected(once, judged_rules(6))
    assert sorted(entry.rule for entry in read_book(again)) == sorted(rule for _, rule in RULES[:6])
    assert reflected(again, judged_rules(6)) == again


@pytest.mark.parametrize(
    "shown",
    [
        [],
        {},
        "text",
        [1, None, "x", []],
        [{"Inputs": "x", "Feedback": "root_cause, as labelled: leak"}],
        [{"Inputs": {"task": "t"}, "Feedback": "Your output failed to parse."}],
        judged(CASES[:1]),
    ],
)
def test_what_teaches_nothing_changes_nothing(shown: Any) -> None:
    """One class alone has nothing to be told from."""
    assert reflected("Name it.", shown) == "Name it."


def test_a_rule_for_what_the_guide_does_not_define_is_left_out() -> None:
    """Nobody would find it again."""
    assert reflected("Write a rule.", judged_rules(4)) == "Write a rule."


def told(inputs: Mapping[str, str], outputs: Mapping[str, str]) -> dict[str, str]:
    """SIMBA's question, those of its parts that are read."""
    texts = {"program_inputs": inputs, "oracle_metadata": outputs, "module_names": ["predict", "other"]}
    return {name: json.dumps(value) for name, value in texts.items()} | {"modules_defn": f"\t\t{GUIDE}"}


def test_the_right_rule_is_the_advice_for_every_module() -> None:
    """As a book of one."""
    inputs, rule = RULES[0]
    advice = json.loads(advise(told(inputs, {"component": "TOOLS", "rule": rule})))
    assert set(advice) == {"predict", "other"}
    (entry,) = read_book(advice["predict"])
    assert (entry.key, entry.place, entry.rule) == (inputs["root_cause"], "TOOLS", rule)


def test_one_case_teaches_no_cues() -> None:
    """There is no advice rather than an invented one."""
    inputs, label = CASES[0]
    assert advise(told(inputs, {"root_cause": label})) == "{}"


@given(any_text, any_text)
def test_no_question_is_too_odd(text: str, other: str) -> None:
    reflect({"current_instruction": text, "examples_with_feedback": other})
    reflected(text, [{"Inputs": {"a": text}, "Feedback": f"a, as labelled: {other}"}] * 2)
    reflected(text, [{"Inputs": {"a": other}, "Feedback": f"rule, as labelled: {text}"}])
    assert isinstance(json.loads(advise({"program_inputs": text, "module_names": other})), dict)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda leaf: st.lists(leaf), max_leaves=5))
def test_no_json_is_too_odd(value: Any) -> None:
    reflected("x", value)
    names = ("program_inputs", "oracle_metadata", "module_names")
    advise({name: json.dumps(value) for name in names})
    advise({"examples_with_feedback": "[" * 50_000, "program_inputs": "[" * 50_000})


def test_dspy_can_read_the_answers_to_its_questions() -> None:
    """In the form that each is asked in: JSON for GEPA, marked fields for SIMBA."""
    import dspy
    from dspy.teleprompt.gepa.instruction_proposal import ProposeInstruction
    from dspy.teleprompt.simba_utils import OfferFeedback

    asked = {"current_instruction": "Name it.", "examples_with_feedback": judged(CASES)}
    adapter = dspy.JSONAdapter()
    found = adapter.parse(ProposeInstruction, answer(adapter.format(ProposeInstruction, [], asked)))
    assert len(read_sheets(found["new_instruction"])) == 1
    inputs, rule = RULES[0]
    question = {**dict.fromkeys(OfferFeedback.input_fields, "x"), **told(inputs, {"rule": rule})}
    adapter = dspy.ChatAdapter()
    found = adapter.parse(OfferFeedback, answer(adapter.format(OfferFeedback, [], question)))
    assert [entry.rule for entry in read_book(found["module_advice"]["predict"])] == [rule]
