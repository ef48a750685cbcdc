"""Who may ask a model next: never more than so many at once, whoever they are."""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count

Ticket = tuple[bool, int, threading.Event]
"""Whether it can wait, when it came, and what is set when a place is handed to it."""


class Line:
    """Where threads wait for their turn. Each is woken once, by whoever leaves."""

    def __init__(self, at_once: int | None = None) -> None:
        """Let so many in at once; None is any number."""
        self._free: float = math.inf if at_once is None else at_once
        self._numbers = count()
        self._waiting: list[Ticket] = []
        self._lock = threading.Lock()

    @contextmanager
    def place(self, *, urgent: bool = False) -> Generator[None]:
        """Wait for a place and hold it: the urgent ones come first, and then who came first."""
        self._enter(urgent=urgent)
        try:
            yield
        finally:
            with self._lock:
                self._leave()

    def _enter(self, *, urgent: bool) -> None:
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            ticket = (not urgent, next(self._numbers), threading.Event())
            heapq.heappush(self._waiting, ticket)
        try:
            ticket[-1].wait()
        except BaseException:
            self._give_up(ticket)
            raise

    def _leave(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[-1].set()
        else:
            self._free += 1

    def _give_up(self, ticket: Ticket) -> None:
        """Be in nobody's way; a place that was handed over meanwhile goes on to the next."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                heapq.heapify(self._waiting)
            else:
                self._leave()
