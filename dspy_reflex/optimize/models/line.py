"""Who may ask a model next: never more than so many at once, whoever they are."""

from __future__ import annotations

import math
import threading
from bisect import insort
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count


class Line:
    """Where threads wait for their turn."""

    def __init__(self, at_once: int | None = None) -> None:
        """Let so many in at once; None is any number."""
        self._free: float = math.inf if at_once is None else at_once
        self._numbers = count()
        self._waiting: list[tuple[bool, int]] = []
        self._moved = threading.Condition()

    @contextmanager
    def place(self, *, urgent: bool = False) -> Generator[None]:
        """Wait for a place and hold it: the urgent ones come first, and then who came first."""
        with self._moved:
            self._wait((not urgent, next(self._numbers)))
            self._free -= 1
        try:
            yield
        finally:
            with self._moved:
                self._free += 1
                self._moved.notify_all()

    def _wait(self, mine: tuple[bool, int]) -> None:
        insort(self._waiting, mine)
        try:
            self._moved.wait_for(lambda: self._free > 0 and self._waiting[0] == mine)
        finally:  # who is interrupted here is in nobody's way
            self._waiting.remove(mine)
            self._moved.notify_all()
