"""What others say of our rows: DSPy's own checks, OpenAI's own types, and a JSON Schema library on our schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dspy.clients.utils_finetune import GRPOChatData, GRPOGroup, TrainDataFormat, validate_data_format
from dspy.teleprompt import BootstrapFinetune
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dspy_reflex.finetune.formats.base import Said
from dspy_reflex.finetune.formats.registry import format_of
from dspy_reflex.finetune.row import Kind, Turn
from tests.finetune.says import CASES, plain, said

jsonschema: Any = pytest.importorskip("jsonschema")
openai: Any = pytest.importorskip("openai.types.chat")
MESSAGES: Any = TypeAdapter(list[openai.ChatCompletionMessageParam])  # pyright: ignore[reportInvalidTypeForm]


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=5)
@given(data=st.data())
def test_schemas_take_what_is_written(name: str, kind: Kind, data: st.DataObject) -> None:
    shape = format_of(name).shapes[kind]
    jsonschema.validate(json.loads(json.dumps(shape.write(data.draw(said(kind))))), shape.schema)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_schemas_refuse_what_is_none(name: str, kind: Kind) -> None:
    shape = format_of(name).shapes[kind]
    row = shape.write(plain(kind))
    for wrong in (None, [], {}, {**row, "note": "x"}, {key: row[key] for key in list(row)[1:]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, shape.schema)


@settings(max_examples=25)
@given(told=said("sft"))
def test_dspys_own_check_takes_chats(told: Said) -> None:
    validate_data_format([format_of("dspy").shapes["sft"].write(told)], TrainDataFormat.CHAT)


def test_groups_have_the_fields_that_dspy_names() -> None:
    turns = (Turn("assistant", "a", 0.0), Turn("user", "no"), Turn("assistant", "b", 1.0))
    row = format_of("dspy").shapes["rewarded"].write(Said((Turn("user", "q"),), turns))
    assert set(row) == set(GRPOGroup.__annotations__)
    assert all(set(one) == set(GRPOChatData.__annotations__) for one in row["group"])
    assert [one["reward"] for one in row["group"]] == [0.0, 1.0]


def test_dspys_finetuning_takes_rows_as_its_own() -> None:
    """`BootstrapFinetune` hands its rows to a language model's `finetune`; so can ours be."""
    lm = _Tuned()
    rows = [format_of("dspy").shapes["sft"].write(plain("sft"))]
    job = {"lm": lm, "train_data": rows, "train_data_format": TrainDataFormat.CHAT, "train_kwargs": {}}
    assert BootstrapFinetune.finetune_lms({"ours": job}) == {"ours": lm}
    assert lm.trained_on == rows


@settings(max_examples=25)
@given(told=said("sft"), pair=said("preference"))
def test_openais_own_types_take_messages(told: Said, pair: Said) -> None:
    shapes = format_of("openai").shapes
    MESSAGES.validate_python(shapes["sft"].write(told)["messages"])
    row = shapes["preference"].write(pair)
    for side in (row["input"]["messages"], row["preferred_output"], row["non_preferred_output"]):
        MESSAGES.validate_python(side)


class _Tuned:
    """A language model that checks rows as DSPy's providers do, and is trained at once."""

    model = "tuned"

    def kill(self) -> None:
        """Nothing runs."""

    def finetune(self, train_data: list[Any], train_data_format: TrainDataFormat, train_kwargs: Any) -> _Tuned:
        validate_data_format(train_data, train_data_format)
        self.trained_on = train_data
        self.thread = self
        return self

    def result(self) -> _Tuned:
        return self

    def join(self) -> None:
        """Done already."""
