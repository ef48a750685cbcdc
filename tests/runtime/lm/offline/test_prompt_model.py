"""The learner as the model that writes instructions for MIPROv2."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from dspy_reflex.runtime.lm.offline.cues import HEADING, read_sheets, write_sheet
from dspy_reflex.runtime.lm.offline.prompt_model import BOOK_SHARES, infer, instruct, observe
from dspy_reflex.runtime.lm.offline.rulebook import read_book
from tests.runtime.lm.offline.prompts import CASES, NEW, accuracy, with_sheet
from tests.runtime.programs import HOUSE, any_text

CAUSES = [inputs | {"label": label} for inputs, label in CASES]
RULES = [
    {"failures": inputs["actual_outcome"], "root_cause": label, "component": "TOOLS", "rule": f"Mind the {label} once."}
    for inputs, label in CASES
]


def shown(rows: list[dict[str, str]], inputs: tuple[str, ...]) -> str:
    """Examples as MIPROv2 shows them: the `repr` of a list of `dspy.Example`."""
    import dspy

    return repr([dspy.Example(**row).with_inputs(*inputs) for row in rows])


OBSERVED = observe({"examples": shown(CAUSES, tuple(CASES[0][0]))})
RULEBOOK = observe({"examples": shown(RULES, ("failures", "root_cause"))})


def test_examples_are_counted_and_mined_for_cues() -> None:
    assert OBSERVED.startswith("24 labelled examples were read.")
    assert all(set(sheet.weights) == set(HOUSE.labels) for sheet in read_sheets(OBSERVED))
    assert OBSERVED.count(HEADING) == len(read_sheets(OBSERVED)) == 2


def test_rules_among_the_examples_become_a_book() -> None:
    book = read_book(RULEBOOK)
    assert len(book) == len(RULES)
    assert {(entry.key, entry.place) for entry in book} == {(label, "TOOLS") for label in HOUSE.labels}


def test_what_it_writes_teaches() -> None:
    instruction = instruct({"dataset_description": OBSERVED, "basic_instruction": "Name it."}, 0)
    assert instruction.startswith("Name it.\n\n")
    assert accuracy(with_sheet(instruction), NEW) >= 0.75


def test_other_seeds_write_other_instructions_and_the_same_seed_the_same() -> None:
    case = {"dataset_description": OBSERVED, "basic_instruction": "Name it."}
    written = [instruct(case, seed) for seed in range(16)]
    assert written == [instruct(case, seed) for seed in range(16)]
    assert len(set(written)) == 2


def test_other_seeds_take_more_or_less_of_a_rule_book() -> None:
    written = {instruct({"dataset_description": RULEBOOK, "basic_instruction": "Write."}, seed) for seed in range(16)}
    assert len(written) > 2
    assert {len(read_book(text)) for text in written} == {round(share * len(RULES)) for share in BOOK_SHARES}


def test_a_sheet_that_stood_in_the_basic_instruction_is_replaced() -> None:
    case = {"dataset_description": OBSERVED, "basic_instruction": "Name it."}
    again = instruct({**case, "basic_instruction": instruct(case, 1)}, 1)
    assert again == instruct(case, 1)
    assert again.count(HEADING) == 1


def test_without_observations_the_basic_instruction_stays() -> None:
    assert instruct({"basic_instruction": "Name it."}, 3) == "Name it."


@pytest.mark.parametrize(
    "examples", ["", "nothing", "[]", "[Example({'a': 'b'})]", "[1, 'x']", "{'a': 1}", "[" * 500, "(" * 500]
)
def test_what_is_no_list_of_examples_ends_the_reading(examples: str) -> None:
    """COMPLETE is what DSPy waits for."""
    assert observe({"examples": examples}) == "COMPLETE"


@pytest.mark.parametrize(
    "value", ["nan", "b", "f()", "open('x')", "[x for x in 'a']", "{[]: 1}", "LabelledFailure(id='x')"]
)
def test_a_value_that_is_no_literal_is_left_out_and_never_run(value: str) -> None:
    """A user's own examples may hold anything; the others still count."""
    whole = ", ".join(f"Example({row!r}) (input_keys={set(CASES[0][0])!r})" for row in CAUSES)
    odd = f"Example({{'task': 't', 'label': 'leak', 'extra': {value}}}) (input_keys={{'task'}})"
    assert "labelled examples were read." in observe({"examples": f"[{whole}, {odd}]"})


@given(any_text)
def test_no_examples_are_too_odd(text: str) -> None:
    observe({"examples": f"[Example({{'a': {text!r}, 'l': 'x'}}) (input_keys={{'a'}})]"})
    observe({"examples": f"[Example({{'a': {text}}}) (input_keys={{'a'}})]"})
    instruct({"dataset_description": text, "basic_instruction": text}, 0)


def test_examples_of_one_class_give_no_cues() -> None:
    rows = [{"x": f"text {i}", "label": "leak"} for i in range(4)]
    assert observe({"examples": shown(rows, ("x",))}) == "4 labelled examples were read.\n"


def test_an_output_of_ever_new_texts_is_no_choice() -> None:
    rows = [{"x": f"text {i}", "story": f"story number {i}"} for i in range(6)]
    assert HEADING not in observe({"examples": shown(rows, ("x",))})


def listed(rows: Sequence[dict[str, str]], inputs: Sequence[str]) -> str:
    """Examples as DSPy's InferRules lists them."""
    text = ""
    for row in rows:
        asked = "\n".join(f"{name}: {value}" for name, value in row.items() if name in inputs)
        told = "\n".join(f"{name}: {value}" for name, value in row.items() if name not in inputs)
        text += f"Input Fields:\n{asked}\n\n=========\nOutput Fields:\n{told}\n\n"
    return text


def test_rules_inferred_from_listed_examples_are_what_examples_of_the_other_form_teach() -> None:
    written = {infer({"examples_text": listed(CAUSES, tuple(CASES[0][0]))}, seed) for seed in range(8)}
    assert {sheet for text in written for sheet in map(write_sheet, read_sheets(text))} == {
        write_sheet(sheet) for sheet in read_sheets(OBSERVED)
    }
    assert accuracy(with_sheet(written.pop()), NEW) >= 0.75


def test_a_book_is_inferred_from_listed_rules() -> None:
    text = infer({"examples_text": listed(RULES, ("failures", "root_cause"))}, 0)
    assert {entry.rule for entry in read_book(text)} <= {row["rule"] for row in RULES}
    assert len(read_book(text)) >= BOOK_SHARES[-1] * len(RULES) - 1


def test_a_text_with_lines_like_fields_is_one_field() -> None:
    """What is no field of every example is part of a text."""
    rows = [*CAUSES[:-1], {**CAUSES[-1], "actual_outcome": "error: 1\nlabel: none\nInput: x"}]
    found = read_sheets(infer({"examples_text": listed(rows, tuple(CASES[0][0]))}, 0))
    assert set(found[0].weights) == set(HOUSE.labels)


@pytest.mark.parametrize(
    "text", ["", "nothing", "Input Fields:\n", "Input Fields:\na: b\n\n=========\nOutput Fields:\n"]
)
def test_what_is_no_list_of_examples_teaches_no_rules(text: str) -> None:
    assert infer({"examples_text": text}, 0) == ""


@given(any_text)
def test_no_listed_examples_are_too_odd(text: str) -> None:
    infer({"examples_text": text}, 0)
    infer({"examples_text": listed([{"a": text, "label": str(i % 2)} for i in range(4)], ("a",))}, 0)
