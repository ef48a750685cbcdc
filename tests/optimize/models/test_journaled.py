"""A model as a compile asks it: once for each question, on one bill, and never after it was stopped."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import BudgetError, JournalError, ModelError, ModelUnavailableError, ReflexError
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.journal import FILE, Journal
from dspy_reflex.optimize.models.journaled import JournaledModel, Role, journaled
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.runtime.lm.model import PLAIN, Completion, Message, Sampling
from tests.optimize.thinking import STRONG, WEAK, Thinking, pointed_at
from tests.runtime.lm.loopback import KEY, answer

Serve = Callable[..., Thinking]


class Echo:
    """A model that says what it was asked, counts, and fails on demand."""

    name = "fake/echo"

    def __init__(self, *failures: ReflexError, wait_s: float = 0.0) -> None:
        self.asked: list[str] = []
        self._failures, self._wait_s, self._lock = list(failures), wait_s, threading.Lock()

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Say the last message again."""
        with self._lock:
            self.asked.append(messages[-1]["content"])
            failure = self._failures.pop(0) if self._failures else None
        time.sleep(self._wait_s)
        if failure:
            raise failure
        return Completion(f"{messages[-1]['content']} {sampling.seed}", "stop", 10, 5)

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """The same."""
        return self.complete(messages, sampling)


class FullDisk(Journal):
    """A journal that takes so many answers and no more."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def note(self, key: str, answer: Completion) -> None:
        """Keep one, or say that there is no room."""
        self._room -= 1
        if self._room < 0:
            raise JournalError("the disk is full")
        super().note(key, answer)


def model(echo: Echo, journal: Journal, ledger: Ledger, role: Role = "task", **place: Any) -> JournaledModel:
    """An echo behind a journal."""
    return JournaledModel(echo, role, journal, ledger, place)


def chat(text: str) -> list[Message]:
    """One question."""
    return [{"role": "system", "content": "Say it again."}, {"role": "user", "content": text}]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


def test_a_question_is_asked_once_and_counted_once(tmp_path: Path) -> None:
    """In this sitting, in a copy, awaited, and in the next sitting, where it is on the bill as replayed."""
    echo, ledger = Echo(), Ledger()
    with closing(Journal(tmp_path / FILE)) as journal:
        asked = model(echo, journal, ledger)
        told = [asked.complete(chat("a")), deepcopy(asked).complete(chat("a")), asyncio.run(asked.acomplete(chat("a")))]
    assert told == [Completion("a None", "stop", 10, 5)] * 3
    assert (ledger.calls, ledger.replayed) == (1, 0)
    again = Ledger()
    with closing(Journal(tmp_path / FILE)) as journal:
        assert [model(echo, journal, again).complete(chat("a")) for _ in range(2)] == told[:2]
    assert (again.calls, again.replayed, again.tokens) == (1, 1, 15)
    assert echo.asked == ["a"]


def test_the_key_is_everything_that_an_answer_depends_on() -> None:
    """The question, how it is drawn, and the place; neither the role nor the bill."""
    echo, journal = Echo(), Journal()
    place: dict[str, Any] = {"model": "m", "endpoint": "http://a/v1", "max_tokens": 10}
    one = model(echo, journal, Ledger(), "task", **place)
    same = model(echo, journal, Ledger(), "measure", max_tokens=10, endpoint="http://a/v1", model="m")
    assert one.key(chat("a")) == same.key(chat("a"), Sampling(None, None))
    changed: list[dict[str, Any]] = [{"model": "n"}, {"endpoint": "http://b/v1"}, {"max_tokens": 11}]
    others = [
        one.key(chat("b")),
        one.key(chat("a")[1:]),
        one.key(chat("a"), Sampling(seed=0)),
        one.key(chat("a"), Sampling(seed=1)),
        one.key(chat("a"), Sampling(temperature=0.0)),
        *(model(echo, journal, Ledger(), "task", **{**place, **part}).key(chat("a")) for part in changed),
    ]
    assert len({one.key(chat("a")), *others}) == len(others) + 1


def test_models_by_name_have_keys_of_their_own(serve: Serve) -> None:
    """By name, by address, and by the longest answer that a role allows; the offline one by its code."""
    serve(lambda _: answer())
    serve(lambda _: answer(), STRONG)
    journal, ledger = Journal(), Ledger()
    keys = {
        (name, role): journaled(name, role, journal, ledger).key(chat("a"))
        for name in (WEAK, STRONG, "offline")
        for role in ("task", "teacher", "measure", "prompt")
    }
    for name in (WEAK, STRONG):
        assert keys[name, "task"] == keys[name, "teacher"] == keys[name, "measure"] != keys[name, "prompt"]
    assert len(set(keys.values())) == 5
    serve(lambda _: answer())
    assert journaled(WEAK, "task", journal, ledger).key(chat("a")) != keys[WEAK, "task"]


def test_a_torn_record_costs_one_call_and_no_more(tmp_path: Path) -> None:
    """The others are answered from the journal."""
    echo = Echo()
    with closing(Journal(tmp_path / FILE)) as journal:
        told = [model(echo, journal, Ledger()).complete(chat(text)) for text in "abcdef"]
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        file.execute("UPDATE answers SET answer = replace(answer, 'c None', 'd None')")
        file.commit()
    for calls in (1, 0):
        echo.asked.clear()
        with closing(Journal(tmp_path / FILE)) as journal:
            ledger = Ledger()
            assert [model(echo, journal, ledger).complete(chat(text)) for text in "abcdef"] == told
        assert (len(echo.asked), ledger.calls, ledger.replayed) == (calls, 6, 6 - calls)


def test_the_file_holds_neither_prompt_nor_key_nor_address(serve: Serve, tmp_path: Path) -> None:
    """Not even while it is open, beside it."""
    server = serve(lambda _: answer("fine"))
    with closing(Journal(tmp_path / FILE)) as journal:
        journaled(WEAK, "task", journal, Ledger()).complete(chat("my secret plans"))
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(server.requests) == 1
    assert b"fine" in content
    assert not [word for word in ("secret", "Say it again", KEY, "127.0.0.1") if word.encode() in content]


@pytest.mark.parametrize("threads", [1, 8])
def test_when_an_answer_cannot_be_kept_nothing_more_is_paid_for(threads: int) -> None:
    """Only the questions on their way are lost."""
    echo, ledger = Echo(wait_s=0.002), Ledger()
    asked = model(echo, FullDisk(20), ledger)

    def one(number: int) -> str:
        try:
            return asked.complete(chat(str(number))).text
        except JournalError as error:
            return str(error)

    with ThreadPoolExecutor(threads) as pool:
        told = list(pool.map(one, range(300)))
    assert told.count("the disk is full") == 300 - 20
    assert ledger.calls == 20
    assert len(echo.asked) <= 20 + threads


def test_one_who_is_out_of_order_ends_it_at_once() -> None:
    """A wrong key is no outage; what is in the journal is answered all the same."""
    echo, ledger = Echo(), Ledger()
    asked = model(echo, Journal(), ledger)
    asked.complete(chat("a"))
    echo._failures.append(ModelError("wrong key"))  # pyright: ignore[reportPrivateUsage]
    for text in "bcd":
        with pytest.raises(ModelError, match="wrong key"):
            asked.complete(chat(text))
    assert asked.complete(chat("a")).text == "a None"
    assert echo.asked == ["a", "b"]


@pytest.mark.parametrize("allowed", [0, 2])
def test_a_call_that_was_given_up_is_asked_again_so_many_times(allowed: int) -> None:
    """An outage is never scored: it is answered, or it ends the compile."""
    outages = [ModelUnavailableError("out of reach")] * 2
    echo, ledger = Echo(*outages), Ledger(Budget(max_errors=allowed))
    asked = model(echo, Journal(), ledger)
    if allowed:
        assert asked.complete(chat("a")).text == "a None"
        assert (echo.asked, ledger.calls, ledger.to_json()["given_up"]) == (["a"] * 3, 1, 2)
    else:
        for _ in range(2):
            with pytest.raises(ModelUnavailableError):
                asked.complete(chat("a"))
        assert (echo.asked, ledger.calls) == (["a"], 0)


def test_replayed_answers_take_room_in_the_budget(tmp_path: Path) -> None:
    """A run may cost so much in all of its sittings together; what is there is always answered."""
    echo = Echo()
    with closing(Journal(tmp_path / FILE)) as journal:
        for text in "abc":
            model(echo, journal, Ledger()).complete(chat(text))
    with closing(Journal(tmp_path / FILE)) as journal:
        asked = model(echo, journal, Ledger(Budget(max_calls=4)))
        for text in "abcd":
            asked.complete(chat(text))
        with pytest.raises(BudgetError):
            asked.complete(chat("e"))
        assert asked.complete(chat("c")).text == "c None"
    assert echo.asked == ["a", "b", "c", "d"]


def test_every_call_is_counted_in_the_phase_it_was_made_in() -> None:
    """What the task model is asked during an evaluation is no bootstrapping."""
    echo, journal, ledger = Echo(), Journal(), Ledger()
    for role, evaluating in (("task", 0), ("teacher", 0), ("task", 1), ("prompt", 1), ("measure", 1)):
        ledger.evaluating = evaluating
        model(echo, journal, ledger, role).complete(chat(f"{role}{evaluating}"))  # pyright: ignore[reportArgumentType]
    calls = {phase: counts["calls"] for phase, counts in ledger.to_json()["phases"].items()}
    assert calls == {"bootstrap": 2, "evaluate": 1, "propose": 1, "measure": 1}
