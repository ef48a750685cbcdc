"""Questions that are begun before their answers are wanted: each once, in order, on one bill, and given up together."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from dspy_reflex.optimize.models.journal import Journal
from dspy_reflex.optimize.models.journaled import JournaledModel
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.optimize.search.asking import Asking
from dspy_reflex.runtime.lm.model import PLAIN, Completion, Message, Sampling

dspy: Any = pytest.importorskip("dspy")


class Model:
    """A model that needs a moment for each answer."""

    name = "fake/model"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Say the question again."""
        text = messages[-1]["content"]
        with self._lock:
            self.asked.append(text)
        time.sleep(0.002)
        return Completion(text, "stop", len(text), 1)

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """The same."""
        return self.complete(messages, sampling)


class Program:
    """A program of one question; `bad` is none it can answer."""

    def __init__(self, lm: JournaledModel, name: str) -> None:
        self.lm, self.name = lm, name

    def __call__(self, text: str) -> str:
        """Ask the model."""
        if text == "bad":
            raise ZeroDivisionError(text)
        return self.lm.complete([{"role": "user", "content": f"{self.name}{text}"}]).text


class Desk:
    """Programs, their model and their bill."""

    def __init__(self, threads: int = 1) -> None:
        self.model, self.ledger = Model(), Ledger()
        self.lm = JournaledModel(self.model, "task", Journal(), self.ledger, {})
        self.asking = Asking(self.ledger, threads)
        self.one, self.two = Program(self.lm, "one-"), Program(self.lm, "two-")


def rows(*texts: str) -> list[Any]:
    """Examples with these inputs."""
    return [dspy.Example(text=text, label="x").with_inputs("text") for text in texts]


@pytest.mark.parametrize("threads", [1, 8])
def test_answers_are_those_to_the_questions_and_each_is_asked_once(threads: int) -> None:
    """However often it is begun and read."""
    desk = Desk(threads)
    with desk.asking.turn(desk.one, "one") as asked:
        asked.begin(rows(*"abcd"))
        asked.begin(rows(*"cdef"))
        assert [asked(text=text) for text in "fedcba" * 2] == [f"one-{text}" for text in "fedcba" * 2]
    assert sorted(desk.model.asked) == [f"one-{text}" for text in "abcdef"]


def test_questions_are_asked_in_the_order_in_which_they_were_begun() -> None:
    """What is asked before its turn waits behind what was begun before it, and no longer."""
    desk = Desk()
    with desk.asking.turn(desk.one, "one") as asked:
        asked.begin(rows("a", "b"))
        desk.asking.opened(desk.two, "two").begin(rows("a"))
        asked.begin(rows("c"))
    with desk.asking.turn(desk.two, "two") as asked:
        asked.begin(rows("a", "b"))
    assert desk.model.asked == ["one-a", "one-b", "two-a", "one-c", "two-b"]


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("threads", [1, 8])
def test_the_bill_is_that_of_one_after_another(early: bool, threads: int) -> None:
    """With whatever was spent before; what is asked before its turn is on the bill of its turn, what was in vain, too."""
    desk = Desk(threads)
    desk.lm.complete([{"role": "user", "content": "before"}])
    with desk.asking.turn(desk.one, "one") as asked:
        asked.begin(rows("a", "b", "c"))
        if early:
            desk.asking.opened(desk.two, "two").begin(rows("a", "b"))
    assert desk.asking.spent == (4, 7 + 3 * 6)
    while early and desk.ledger.calls < 6:
        time.sleep(0.001)
    with desk.asking.turn(desk.two, "two") as asked:
        asked.begin(rows("a", "b"))
    assert desk.asking.spent == (6, 7 + 5 * 6) == (desk.ledger.calls, desk.ledger.tokens)
    assert desk.ledger.evaluating == 0


def test_when_a_turn_is_over_nothing_of_it_is_on_its_way() -> None:
    """Even if nobody wanted the answers; it counts as an evaluation until then."""
    desk = Desk(4)
    with desk.asking.turn(desk.one, "one") as asked:
        asked.begin(rows(*"abcdefgh"))
        assert desk.ledger.evaluating == 1
    assert (len(desk.model.asked), desk.ledger.calls, desk.ledger.evaluating) == (8, 8, 0)
    assert desk.ledger.to_json()["phases"].keys() == {"evaluate"}


def test_what_goes_wrong_with_one_question_is_told_to_who_wants_its_answer() -> None:
    """The others are answered."""
    desk = Desk()
    with desk.asking.turn(desk.one, "one") as asked:
        asked.begin(rows("a", "bad", "b"))
        with pytest.raises(ZeroDivisionError, match="bad"):
            asked(text="bad")
        assert asked(text="b") == "one-b"


def test_after_an_error_nothing_more_is_asked_of_anybody() -> None:
    """Nor waited for."""
    desk = Desk()

    def interrupted() -> None:
        with desk.asking.turn(desk.one, "one") as asked:
            asked.begin(rows(*"abcdefgh"))
            desk.asking.opened(desk.two, "two").begin(rows("a"))
            asked(text="a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    time.sleep(0.05)
    assert len(desk.model.asked) <= 3
    assert desk.ledger.evaluating == 0
    with desk.asking.turn(desk.two, "two") as asked:
        asked.begin(rows("z"))
        assert asked(text="z") == "two-z"
