"""Where threads wait for their turn: how many at once, who is next, and that nobody is in the way."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dspy_reflex.optimize.models.line import Line

LONG_S = 10.0
"""Nobody should ever wait so long."""


class Crowd:
    """Threads that come to a line one after another while its only place is taken."""

    def __init__(self, line: Line) -> None:
        self.served: list[str] = []
        self._line, self._threads = line, list[threading.Thread]()

    def comes(self, name: str, *, urgent: bool = False) -> None:
        """One more, in the line for certain."""

        def wait() -> None:
            with self._line.place(urgent=urgent):
                self.served.append(name)

        before = len(self._waiting)
        self._threads.append(threading.Thread(target=wait, daemon=True))
        self._threads[-1].start()
        deadline = time.monotonic() + LONG_S
        while len(self._waiting) == before and time.monotonic() < deadline:
            time.sleep(0.001)

    @property
    def _waiting(self) -> list[Any]:
        return vars(self._line)["_waiting"]

    def all(self) -> list[str]:
        """Who was served, in order, when all were."""
        for thread in self._threads:
            thread.join(LONG_S)
        return self.served


@pytest.mark.parametrize("at_once", [1, 3, None])
def test_no_more_than_so_many_are_in_at_once(at_once: int | None) -> None:
    """And as many as that; without a limit all of them."""
    line, inside, most = Line(at_once), 0, 0
    lock, everyone = threading.Lock(), threading.Barrier(at_once or 8)

    def one(number: int) -> None:
        nonlocal inside, most
        with line.place(urgent=number % 3 == 0):
            with lock:
                inside += 1
                most = max(most, inside)
            everyone.wait(LONG_S)  # it takes as many as may be in to go on
            with lock:
                inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(24)))
    assert most == (at_once or 8)


def test_the_urgent_ones_come_first_and_then_who_came_first() -> None:
    """Whoever has a place keeps it."""
    line = Line(1)
    crowd = Crowd(line)
    with line.place():
        crowd.comes("a")
        crowd.comes("b")
        crowd.comes("first", urgent=True)
        crowd.comes("c")
        crowd.comes("second", urgent=True)
        assert crowd.served == []
    assert crowd.all() == ["first", "second", "a", "b", "c"]


def test_what_goes_wrong_inside_gives_the_place_back() -> None:
    """And is told as it is."""
    line = Line(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), line.place():
            _ = 1 // 0


def test_who_is_interrupted_while_waiting_is_in_nobodys_way() -> None:
    """Ctrl-C hits whatever the main thread waits for."""
    line = Line(1)
    crowd = Crowd(line)

    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with line.place():
            taken.set()
            over.wait(LONG_S)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    taken.wait(LONG_S)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), line.place(urgent=True):
        pytest.fail("there was no place")
    crowd.comes("next")
    over.set()
    assert crowd.all() == ["next"]
    holder.join(LONG_S)
