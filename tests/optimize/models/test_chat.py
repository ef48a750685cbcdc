"""Our chat format is DSPy's to the letter, however often and in whatever order it is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from dspy.utils.callback import BaseCallback
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.optimize.models.chat import KEPT, Chat

dspy: Any = pytest.importorskip("dspy")

SIGNATURES = [dspy.Signature("text, hint -> label, why", told) for told in ("Sort it.", "  Sort\n\nit well.\n")]
THEIRS, OURS = dspy.ChatAdapter(), Chat()
TEXTS = st.text(max_size=12)
VALUES = st.one_of(TEXTS, st.none(), st.integers(), st.lists(TEXTS, max_size=2))
DEMOS = st.lists(
    st.dictionaries(st.sampled_from(["text", "hint", "label", "why", "dspy_id"]), VALUES, max_size=5), max_size=4
)


@given(st.sampled_from(SIGNATURES), DEMOS, TEXTS)
def test_it_writes_what_dspy_writes(signature: Any, demos: list[dict[str, Any]], text: str) -> None:
    """One adapter for all of these: what it kept of others does not show."""
    inputs = {"text": text, "hint": ""}
    for shown in (demos, [dspy.Example(demo) for demo in demos]):
        for _ in range(2):
            assert OURS.format(signature, shown, inputs) == THEIRS.format(signature, shown, inputs)


def test_what_callers_do_to_a_chat_or_to_demos_does_not_show_in_the_next_one() -> None:
    """The chat is theirs, and a demo that was changed is another one."""
    adapter, inputs = Chat(), {"text": "a", "hint": "b"}
    demo = dspy.Example(text="one", hint="", label="x", why="so")
    for message in adapter.format(SIGNATURES[0], [demo], inputs):
        message["content"] = "spoilt"
    assert adapter.format(SIGNATURES[0], [demo], inputs) == THEIRS.format(SIGNATURES[0], [demo], inputs)
    demo.label = "y"
    assert adapter.format(SIGNATURES[0], [demo], inputs) == THEIRS.format(SIGNATURES[0], [demo], inputs)


def test_a_signature_that_is_changed_in_place_is_another_one() -> None:
    """DSPy's InferRules does that to the instructions."""
    adapter, inputs = Chat(), {"text": "a", "hint": "b"}
    signature = dspy.Signature("text, hint -> label, why", "Sort it.")
    adapter.format(signature, [], inputs)
    signature.instructions = "Do not sort it."
    assert adapter.format(signature, [], inputs) == THEIRS.format(signature, [], inputs)


def test_callbacks_are_told_once() -> None:
    """As by DSPy's own: a subclass's methods would be wrapped again."""

    class Told(BaseCallback):
        def __init__(self) -> None:
            self.said: list[str] = []

        def on_adapter_format_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.said.append("format")

        def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.said.append("parse")

    told = Told()
    with dspy.context(callbacks=[told]):
        Chat().format(SIGNATURES[0], [], {"text": "a", "hint": "b"})
        Chat().parse(SIGNATURES[0], "[[ ## label ## ]]\nx\n\n[[ ## why ## ]]\nso")
    assert told.said == ["format", "parse"]


def test_it_writes_demos_once_and_does_not_keep_all_it_ever_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search has hundreds of candidates."""
    written: list[Any] = []
    theirs = dspy.ChatAdapter.format_demos

    def counted(self: Any, signature: Any, demos: Any) -> Any:
        written.append(demos)
        return theirs(self, signature, demos)

    monkeypatch.setattr(dspy.ChatAdapter, "format_demos", counted)
    adapter = Chat()
    for number in range(3 * KEPT):
        demos = [dspy.Example(text=str(number), hint="", label="x", why="so")]
        for _ in range(3):
            adapter.format_demos(SIGNATURES[0], demos)
    assert len(written) == 3 * KEPT
    assert len(vars(adapter)["_written"]) <= KEPT
