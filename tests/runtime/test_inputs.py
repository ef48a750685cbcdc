"""What of a failure goes into a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.inputs import (
    FAILURE_CHARS,
    LIMITS,
    MAX_FAILURES,
    NOT_STATED,
    RULES_CHARS,
    cause_inputs,
    rule_inputs,
)
from dspy_reflex.runtime.parse import HEADER, sections
from dspy_reflex.untrusted import neutralise
from tests.runtime.programs import CUSTOM, any_text, raw_failures

SECRET = "tell-tale"
BIG = {"task": "t" * 9_000, "expected_outcome": "e" * 9_000, "actual_outcome": "a" * 9_000, "context": "c" * 20_000}
KNOWN = {"id": "f1", "agent_id": "a1", "severity": "high", "root_cause": "leak", "reason": "r", "labels": ["leak"],
         "also_acceptable": ["x"], "component": "TOOLS", "reference_rule": "rule", "key_points": ["k"], "family": "fam"}  # fmt: skip


@given(raw_failures, st.dictionaries(st.text(max_size=5).map(lambda name: f"x_{name}"), st.just(SECRET)))
def test_fields_that_are_not_named_never_get_in(failure: dict[str, Any], more: dict[str, Any]) -> None:
    hidden = {name: SECRET for name in KNOWN if name not in failure}
    assert cause_inputs(failure | more | hidden) == cause_inputs(failure)
    assert rule_inputs([failure | more | hidden], "leak", []) == rule_inputs([failure], "leak", [])


def test_a_label_or_a_reason_never_gets_in() -> None:
    """All that a labelled row has beside the failure."""
    bare = {"task": "t", "expected_outcome": "e", "actual_outcome": "a", "context": {"log": "l"}}
    assert cause_inputs(bare | KNOWN) == cause_inputs(bare)
    assert rule_inputs([bare | KNOWN], "cold_room", []) == rule_inputs([bare], "cold_room", [])
    assert "leak" not in json.dumps(rule_inputs([bare | KNOWN], "cold_room", []))


@given(raw_failures)
def test_the_same_failure_gives_the_same_texts_in_the_same_order(failure: dict[str, Any]) -> None:
    inputs = cause_inputs(failure)
    assert list(inputs) == ["task", "expected_outcome", "actual_outcome", "context"]
    assert inputs == cause_inputs(dict(reversed(failure.items())))


@given(raw_failures, st.lists(any_text, max_size=4))
def test_every_input_is_harmless_text_within_its_limit(failure: dict[str, Any], rules: list[str]) -> None:
    inputs = cause_inputs(failure)
    assert all(0 < len(text) <= LIMITS[name] for name, text in inputs.items())
    both = inputs | rule_inputs([failure] * 7, "leak", rules)
    for text in both.values():
        assert not any(HEADER.match(line.strip()) for line in text.splitlines())
        assert not any(mark in text for mark in CUSTOM)
        text.encode()
    assert len(both["existing_rules"]) <= RULES_CHARS


@given(raw_failures)
def test_a_failure_adds_no_field_to_the_prompt(failure: dict[str, Any]) -> None:
    inputs = cause_inputs(failure)
    prompt = "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in inputs.items())
    assert list(sections(prompt)) == list(inputs)


def test_long_fields_are_clipped_in_the_middle() -> None:
    for name, text in cause_inputs(BIG).items():
        assert len(text) == LIMITS[name]
        assert text[0] == text[-1] == name[0] if name != "actual_outcome" else text[-1] == "a"
        assert "characters left out" in text


def test_a_megabyte_of_context_is_clipped() -> None:
    found = cause_inputs(
        {"task": "t", "actual_outcome": "a", "context": {"log": ["[[ ## x ## ]]" * 80_000, "the end"]}}
    )
    assert len(found["context"]) == LIMITS["context"]
    assert found["context"].endswith("the end")


@pytest.mark.parametrize("value", [None, "", "  \n ", "\u200b", {}, []])
def test_what_is_missing_is_said_to_be(value: Any) -> None:
    expected = "[]" if value == [] else NOT_STATED
    assert cause_inputs({"expected_outcome": value})["expected_outcome"] == expected


def test_context_of_any_shape_is_text() -> None:
    found = cause_inputs({"context": {"messages": [{"role": "user"}, "hi"], "n": 3, "ok": True}})
    assert found["context"] == 'messages:\n{"role":"user"}\nhi\nn: 3\nok: true'


def test_several_failures_stand_one_under_the_other() -> None:
    found = rule_inputs([{"task": "one", "actual_outcome": "a"}, {"task": "two", "actual_outcome": "b"}], "leak", [])
    assert found["failures"].count("task: ") == 2
    assert found["failures"].index("task: one") < found["failures"].index("task: two")
    assert found["root_cause"] == "leak"
    assert found["existing_rules"] == NOT_STATED


def test_more_failures_than_fit_are_left_out() -> None:
    found = rule_inputs([BIG | {"task": f"number {i}"} for i in range(9)], "leak", [])
    assert f"number {MAX_FAILURES - 1}" in found["failures"]
    assert f"number {MAX_FAILURES}" not in found["failures"]
    assert len(found["failures"]) <= MAX_FAILURES * (FAILURE_CHARS + 2)


def test_failures_may_come_from_a_generator() -> None:
    found = rule_inputs(({"task": name} for name in ("one", "two")), "leak", (rule for rule in ["Be brief."]))
    assert "task: two" in found["failures"]
    assert found["existing_rules"] == "- Be brief."


@given(st.lists(any_text, min_size=1, max_size=5))
def test_rules_are_listed_as_they_are_but_harmless(rules: list[str]) -> None:
    assert rule_inputs([], "leak", rules)["existing_rules"] == "\n".join(f"- {neutralise(rule)}" for rule in rules)


def test_more_rules_than_fit_are_clipped_and_say_so() -> None:
    found = rule_inputs([], "leak", [f"rule {i}" for i in range(2_000)])["existing_rules"]
    assert len(found) == RULES_CHARS
    assert "characters left out" in found
    assert found.endswith("rule 1999")
