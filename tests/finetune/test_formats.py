"""Every format: what is written can be read back, is what the format's schema says, and odd rows are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.finetune.formats.base import Said, UnfitError
from dspy_reflex.finetune.formats.registry import FORMATS
from dspy_reflex.finetune.row import Kind, Turn

CASES = [pytest.param(name, kind, id=f"{name}-{kind}") for name, one in FORMATS.items() for kind in one.shapes]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip) | st.sampled_from(
    ["### User", " ### Assistant\n### System", "a\r\nb", "[[ ## x ## ]]", "a\u2028b", "{}"]
)
users = texts.map(lambda text: Turn("user", text))
answers = texts.map(lambda text: Turn("assistant", text))


@st.composite
def said(draw: st.DrawFn, kind: Kind) -> Said:
    """What a row of a kind may say."""
    system = draw(st.lists(texts.map(lambda text: Turn("system", text)), max_size=1))
    prompt = (*system, draw(users))
    if kind == "rewarded":
        first, last = draw(texts), draw(texts)
        return Said(prompt, (Turn("assistant", first, 0.0), draw(users), Turn("assistant", last, 1.0)))
    if kind == "preference":
        return Said(prompt, (draw(answers),), (draw(answers),))
    if kind == "unpaired":
        return Said(prompt, (draw(answers),), label=draw(st.booleans()))
    more = draw(st.lists(st.tuples(users, answers), max_size=2))
    return Said(prompt, (draw(answers), *(turn for pair in more for turn in pair)))


@pytest.mark.parametrize(("name", "kind"), CASES)
@given(data=st.data())
def test_what_is_written_is_valid_and_reads_back_as_it_was(name: str, kind: Kind, data: st.DataObject) -> None:
    shape, told = FORMATS[name].shapes[kind], data.draw(said(kind))
    try:
        row = shape.write(told)
    except UnfitError:
        assert len(told.answer) > 1, "only longer answers may not fit"
        return
    stored = json.loads(json.dumps(row))
    assert shape.problem(stored) == ""
    assert shape.read(stored) == told


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_row_that_is_not_of_the_format_is_told(name: str, kind: Kind) -> None:
    shape = FORMATS[name].shapes[kind]
    for wrong in (None, [], {}, {"messages": "hello"}, {"prompt": [{"role": "robot", "content": "x"}]}):
        assert shape.problem(wrong)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_field_too_many_is_told(name: str, kind: Kind) -> None:
    shape = FORMATS[name].shapes[kind]
    label = True if kind == "unpaired" else None
    rejected = (Turn("assistant", "no"),) if kind == "preference" else ()
    reward = 1.0 if kind == "rewarded" else None
    row = shape.write(Said((Turn("user", "q"),), (Turn("assistant", "a", reward),), rejected, label))
    assert shape.problem({**row, "note": "x"})


def test_a_conversation_that_bedrock_refuses_is_left_out() -> None:
    twice = Said((Turn("user", "a"), Turn("user", "b")), (Turn("assistant", "c"),))
    with pytest.raises(UnfitError, match="take turns"):
        FORMATS["bedrock"].shapes["sft"].write(twice)


def test_trainers_that_want_files_beside_get_them_for_the_kinds_there_are() -> None:
    info = json.loads(FORMATS["llama_factory"].beside(["preference"])["dataset_info.json"])
    assert list(info) == ["reflex_preference"]
    assert info["reflex_preference"]["ranking"] is True
    assert list(FORMATS["axolotl"].beside(["sft"])) == ["axolotl-sft.yaml"]
    assert FORMATS["trl"].beside(["sft"]) == {}
