"""Every format: what is written can be read back and is what its schema says, and odd rows are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import ExportError
from dspy_reflex.finetune.formats.base import Said, UnfitError, check
from dspy_reflex.finetune.formats.registry import NAMES, format_of
from dspy_reflex.finetune.row import Kind, Turn
from tests.finetune.says import CASES, plain, said


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_is_valid_and_reads_back_as_it_was(name: str, kind: Kind, data: st.DataObject) -> None:
    shape, told = format_of(name).shapes[kind], data.draw(said(kind))
    check(told)
    stored = json.loads(json.dumps(shape.write(told)))
    assert shape.problem(stored) == ""
    assert shape.read(stored) == told


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_row_that_is_not_of_the_format_is_told(name: str, kind: Kind) -> None:
    form = format_of(name)
    for wrong in (None, [], {}, 1, {"messages": "hello"}, {"prompt": [{"role": "robot", "content": "x"}]}):
        assert form.shapes[kind].problem(wrong)
        assert form.problem(wrong)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_field_too_many_or_too_few_is_told(name: str, kind: Kind) -> None:
    shape = format_of(name).shapes[kind]
    row = shape.write(plain(kind))
    for wrong in ({**row, "note": "x"}, {key: row[key] for key in list(row)[1:]}):
        assert shape.problem(wrong)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ((), ("assistant",)),
        (("system",), ("assistant",)),
        (("user", "user"), ("assistant",)),
        (("user",), ("assistant", "user")),
        (("user",), ("assistant", "assistant")),
    ],
)
def test_what_is_no_question_or_answer_is_told(name: str, asked: Any, answered: Any) -> None:
    wrong = Said(tuple(Turn(role, "x") for role in asked), tuple(Turn(role, "x") for role in answered))
    with pytest.raises(UnfitError):
        check(wrong)
    shape = format_of(name).shapes["sft"]
    try:
        row = shape.write(wrong)
    except (KeyError, IndexError, ValueError):
        return  # it has no words for such a row at all
    assert shape.problem(row)


def test_a_turn_that_says_nothing_is_told() -> None:
    with pytest.raises(UnfitError, match="says nothing"):
        check(Said((Turn("user", "q"),), (Turn("assistant", " \n"),)))


def test_the_kind_that_is_nearest_says_what_is_wrong() -> None:
    row = format_of("trl").shapes["unpaired"].write(plain("unpaired"))
    assert format_of("trl").problem({**row, "label": "yes"}).startswith("label: ")


def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(ExportError, match="'csv' is no format; it is one of trl,"):
        format_of("csv")


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_called_as_it_is_asked_for(name: str) -> None:
    assert format_of(name).name == name


def test_what_a_user_says_in_between_is_not_learned_by_trl() -> None:
    turns = (Turn("assistant", "a"), Turn("user", "b"), Turn("assistant", "c"))
    row = format_of("trl").shapes["sft"].write(Said((Turn("user", "q"),), turns))
    assert row["completion"] == [{"role": "assistant", "content": "c"}]
    assert [one["content"] for one in row["prompt"]] == ["q", "a", "b"]


def test_what_was_said_before_stands_in_alpacas_history() -> None:
    turns = (Turn("assistant", "a"), Turn("user", "b"), Turn("assistant", "c"))
    row = format_of("alpaca").shapes["sft"].write(Said((Turn("system", "s"), Turn("user", "q")), turns))
    assert row == {"instruction": "b", "input": "", "output": "c", "system": "s", "history": [["q", "a"]]}


def test_trainers_that_want_files_beside_get_them_for_the_files_there_are() -> None:
    info = json.loads(format_of("llama_factory").beside(["preference/train"])["dataset_info.json"])
    assert list(info) == ["reflex_preference_train"]
    assert info["reflex_preference_train"]["ranking"] is True
    beside = format_of("axolotl").beside(["preference/train", "sft/train", "sft/validation"])
    assert "test_datasets:\n  - path: data/sft/validation.jsonl\n" in beside["axolotl-sft.yaml"]
    assert "test_datasets" not in beside["axolotl-preference.yaml"]
    assert format_of("trl").beside(["sft/train"]) == {}
