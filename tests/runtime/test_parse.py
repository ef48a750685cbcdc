"""Parsing: what we accept, DSPy accepts with the same values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import AnswerError
from dspy_reflex.optimize.publish import adapter
from dspy_reflex.optimize.signatures import cause_signature, rule_signature
from dspy_reflex.runtime.parse import parse, sections
from tests.runtime.programs import HOUSE, cause_answer, chat_answer, hostile_text, published, rule_answer

CAUSE = published().data["outputs"]
RULE = published("rule").data["outputs"]
SIGNATURES = {"cause": (CAUSE, cause_signature(HOUSE)), "rule": (RULE, rule_signature(HOUSE))}

headers = st.sampled_from([f"[[ ## {field['name']} ## ]]" for field in [*CAUSE, *RULE]] + ["[[ ## completed ## ]]"])
lines = st.one_of(
    headers,
    st.tuples(st.sampled_from(["", " ", "\t", "> ", "\u3000", "```"]), headers, hostile_text).map("".join),
    hostile_text,
    st.text(max_size=5),
)
ends = st.sampled_from(["\n", "\r\n", "\n\n", "\u2028", "\x85", "\x0b", "\r", ""])
answers = st.lists(st.tuples(lines, ends).map("".join), max_size=14).map("".join)

numbers = st.floats().map(str) | st.sampled_from(
    ["0.9", " .5 ", "1e-3", "1_000", "90%", "0.9 (high)", "nan", "-inf", "1e999", "\u0663", "\uff11", "0x1", "0,9", "--1", "1."]
) | st.text(st.characters(categories=["Nd", "No"]) | st.sampled_from("+-._e "), max_size=6)  # fmt: skip
labels = st.sampled_from([*HOUSE.labels, "none", "Leak", "leaks", ""])
quoted = st.tuples(st.sampled_from(["", "'", '"', "`", "**", " '", '""']), labels).map(lambda it: it[0] + it[1] + it[0])
wrapped = st.tuples(
    st.sampled_from(["{}", "Literal[{}]", "str[{}]", "literal[{}]", "Literal[{}", "'Literal[{}]'"]), quoted
)
choices = wrapped.map(lambda it: it[0].format(it[1]))


def agrees_with_dspy(kind: str, text: str) -> dict[str, Any] | None:
    """What we read, having checked that DSPy reads the same; None where we refuse."""
    outputs, signature = SIGNATURES[kind]
    try:
        ours = parse(outputs, text)
    except AnswerError:
        return None
    theirs = adapter().parse(signature, text)
    assert list(ours) == [field["name"] for field in outputs]
    assert {name: _comparable(value) for name, value in ours.items()} == {n: _comparable(v) for n, v in theirs.items()}
    assert all(type(ours[name]) is type(theirs[name]) for name in ours)
    return ours


def _comparable(value: Any) -> Any:
    return "not a number" if isinstance(value, float) and math.isnan(value) else value


@settings(max_examples=300)
@given(answers, st.sampled_from(["cause", "rule"]))
def test_dspy_accepts_whatever_we_accept(text: str, kind: str) -> None:
    agrees_with_dspy(kind, text)


@settings(max_examples=300)
@given(answers, answers, choices)
def test_dspy_reads_the_same_choices(before: str, text: str, choice: str) -> None:
    agrees_with_dspy("cause", f"{before}\n{cause_answer(reasoning=text, root_cause=choice)}")


@settings(max_examples=300)
@given(numbers)
def test_dspy_reads_the_same_numbers(number: str) -> None:
    agrees_with_dspy("cause", cause_answer(confidence=number))


@given(answers, answers)
def test_dspy_reads_the_same_rules(before: str, text: str) -> None:
    agrees_with_dspy("rule", f"{before}\n{rule_answer(rule=text)}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (cause_answer(), {"root_cause": "leak", "second": "none", "confidence": 0.9}),
        ("Sure!\n\n" + cause_answer(), {"root_cause": "leak"}),
        (cause_answer().replace("\n", "\r\n"), {"reasoning": "It drips.", "root_cause": "leak"}),
        (cause_answer().replace("]]\n", "]] "), {"reasoning": "It drips.", "root_cause": "leak", "confidence": 0.9}),
        (cause_answer().removesuffix("\n\n[[ ## completed ## ]]"), {"confidence": 0.9}),
        (cause_answer(root_cause="'leak'"), {"root_cause": "leak"}),
        (cause_answer(root_cause='"leak"'), {"root_cause": "leak"}),
        (cause_answer(root_cause="Literal[leak]"), {"root_cause": "leak"}),
        (cause_answer(root_cause="Literal['leak']"), {"root_cause": "leak"}),
        (cause_answer(root_cause='str["leak"]'), {"root_cause": "leak"}),
        (cause_answer() + "\n\n[[ ## root_cause ## ]]\nblockage", {"root_cause": "leak"}),
        (cause_answer(reasoning="as in `[[ ## root_cause ## ]]`"), {"reasoning": "as in `[[ ## root_cause ## ]]`"}),
        (cause_answer(evidence="one\u2028two\n\n  three  "), {"evidence": "one\ntwo\n\n  three"}),
        (cause_answer(evidence=""), {"evidence": ""}),
        (cause_answer(confidence="1"), {"confidence": 1.0}),
        (chat_answer(extra="x") + "\n" + cause_answer(), {"root_cause": "leak"}),
        ("  " + cause_answer(), {"reasoning": "]]\nIt drips."}),  # DSPy cuts an indented header off too early, so we do
    ],
)
def test_an_answer_is_read(text: str, found: dict[str, Any]) -> None:
    ours = agrees_with_dspy("cause", text)
    assert ours is not None
    assert {name: ours[name] for name in found} == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer has no field 'reasoning'"),
        ("leak", "the answer has no field 'reasoning'"),
        (cause_answer().replace("## second ##", "## third ##"), "the answer has no field 'second'"),
        (cause_answer().replace("[[ ## evidence", "> [[ ## evidence"), "the answer has no field 'evidence'"),
        (
            cause_answer(root_cause="Leak"),
            "the field 'root_cause' is none of leak, blockage, short_circuit, cold_room: 'Leak'",
        ),
        (cause_answer(root_cause="none"), "the field 'root_cause' is none of"),
        (cause_answer(root_cause="leak, blockage"), "the field 'root_cause' is none of"),
        (cause_answer(root_cause="**leak**"), "the field 'root_cause' is none of"),
        (cause_answer(root_cause=""), "the field 'root_cause' is none of"),
        (cause_answer(confidence="high"), "the field 'confidence' is not a number: 'high'"),
        (cause_answer(confidence="90%"), "the field 'confidence' is not a number"),
        (cause_answer(confidence=""), "the field 'confidence' is not a number"),
        (cause_answer(root_cause="blockage'").replace("leak", "x"), "'root_cause'"),
        ("[[ ## root_cause ## ]]\nnothing\n" + cause_answer(), "'root_cause' is none of"),
        ('{"root_cause": "leak"}', "the answer has no field"),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_with_its_field(text: str, reason: str) -> None:
    with pytest.raises(AnswerError) as caught:
        parse(CAUSE, text)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 200


def test_digits_of_other_scripts_are_no_number() -> None:
    """Python's `float` reads them; DSPy's parser does not."""
    assert agrees_with_dspy("cause", cause_answer(confidence="\u0660.\u0669")) is None


def test_a_long_wrong_answer_is_not_quoted_in_full() -> None:
    with pytest.raises(AnswerError) as caught:
        parse(CAUSE, cause_answer(root_cause="x" * 10_000))
    assert len(str(caught.value)) < 200


@given(hostile_text)
def test_sections_never_fail(text: str) -> None:
    found = sections(text)
    assert all(value == value.strip() for value in found.values())


def test_the_first_of_equal_headers_wins() -> None:
    assert sections("[[ ## a ## ]] 1\n[[ ## b ## ]]\n2\n[[ ## a ## ]]\n3") == {"a": "1", "b": "2"}


def test_text_before_the_first_header_belongs_to_no_field() -> None:
    assert sections("hello\n[[ ## a ## ]]\nworld") == {"a": "world"}
