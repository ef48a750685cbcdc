"""A whole compile keeps its threads busy, never asks more at a time than it may, and comes to the same with any number."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from dspy_reflex.errors import BudgetError, ModelUnavailableError
from dspy_reflex.optimize.measure import beforehand, meanwhile
from dspy_reflex.optimize.models.ledger import Ledger
from tests.optimize.compiles import quick, take, write_rows
from tests.optimize.thinking import WEAK, Thinking, pointed_at, wise
from tests.runtime.lm.loopback import Reply, Request

Serve = Callable[..., Thinking]
THREADS = 4


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows to learn from, twenty-four to choose on: two blocks."""
    folder = tmp_path_factory.mktemp("threads")
    write_rows(folder / "train.jsonl", take(0, 2))
    write_rows(folder / "val.jsonl", take(2, 6))
    return folder


class Busy:
    """A model that needs a moment, and knows how many ask it at once."""

    def __init__(self) -> None:
        self.most, self._now, self._lock = 0, 0, threading.Lock()

    def __call__(self, request: Request) -> Reply:
        """Answer as the offline learner does."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.004)
        with self._lock:
            self._now -= 1
        return wise(request)


@pytest.mark.parametrize("optimizer", ["miprov2", "bootstrap_random_search", "labeled_few_shot"])
def test_no_more_is_asked_at_a_time_than_there_are_threads(
    optimizer: str, rows: Path, serve: Serve, tmp_path: Path
) -> None:
    """Whoever asks, and the program is the same; calls and bill, too."""
    found = {}
    for threads in (1, THREADS):
        busy = Busy()
        server = serve(busy)
        found[threads] = quick(tmp_path / str(threads), rows, optimizer=optimizer, lm=WEAK, threads=threads)
        assert busy.most <= threads
        assert busy.most == threads or optimizer == "labeled_few_shot"
        assert len(server.requests) == found[threads].calls
    assert found[1].path.read_bytes() == found[THREADS].path.read_bytes()
    assert found[1].candidates == found[THREADS].candidates
    assert found[1].ledger["phases"] == found[THREADS].ledger["phases"]


def test_the_uncompiled_program_is_measured_while_demos_are_worked_out(
    rows: Path, serve: Serve, tmp_path: Path
) -> None:
    """Questions without demos, of the one, come among questions with demos, of the other."""
    server = serve(Busy())
    quick(tmp_path, rows, optimizer="bootstrap_random_search", lm=WEAK, threads=THREADS)
    with_demos = [len(request.body["messages"]) > 2 for request in server.requests]
    last_of_measuring = max(place for place, shown in enumerate(with_demos) if not shown)
    assert any(with_demos[:last_of_measuring])


def test_when_measuring_goes_wrong_nothing_more_is_asked() -> None:
    """A search would be paid for in vain."""
    ledger = Ledger()

    def measuring() -> None:
        raise ModelUnavailableError("nobody is there")

    with meanwhile(measuring, ledger) as waiting:
        assert isinstance(waiting.exception(), ModelUnavailableError)
        with pytest.raises(ModelUnavailableError), ledger.asking("fake/model", 1):
            pytest.fail("there was nothing more to ask")


def test_what_is_measured_beforehand_ends_there_when_it_goes_wrong() -> None:
    """In this thread: a batch that takes hours is nothing to wait for after Ctrl-C."""

    def measuring() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), beforehand(measuring):
        pytest.fail("it had begun")
    with beforehand(lambda: 5) as measured:
        assert measured.result() == 5


def test_when_something_goes_wrong_meanwhile_measuring_stops() -> None:
    """Ctrl-C need not wait for all of val."""
    ledger, measured = Ledger(), list[int]()

    def measuring() -> None:
        for number in range(1000):
            with ledger.asking("fake/model", 1):
                measured.append(number)
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt), meanwhile(measuring, ledger) as waiting:
        raise KeyboardInterrupt
    assert isinstance(waiting.exception(), BudgetError)
    assert len(measured) < 1000
