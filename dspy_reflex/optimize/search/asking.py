"""Programs that are asked before their answers are wanted, so that threads need not wait for the slowest of a block."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from dspy_reflex.optimize.models.journaled import SPENT
from dspy_reflex.optimize.models.ledger import Ledger

SPARE = 4
"""One thread more for so many: it has its question ready when an answer comes. No more are asked at once, for that the
ledger sees to."""


class Asked:
    """A program with questions on their way. Called with the inputs of one, it waits for the answer and gives it."""

    def __init__(self, program: Any, name: str, pool: ThreadPoolExecutor) -> None:
        """Ask `program`, which is known as `name`, in the threads of `pool`."""
        self.program, self.name = program, name
        self._pool = pool
        self._answers: dict[str, Future[Any]] = {}
        self._tokens: list[int] = []

    def begin(self, examples: Sequence[Any]) -> None:
        """Put these questions behind those that wait already, under DSPy's present settings; none is asked twice."""
        for example in examples:
            inputs = dict(example.inputs())
            if _key(inputs) not in self._answers:
                context = contextvars.copy_context()
                context.run(SPENT.set, self._tokens)
                self._answers[_key(inputs)] = self._pool.submit(context.run, self.program, **inputs)

    def __call__(self, **inputs: Any) -> Any:
        """The answer, or what went wrong with it."""
        return self._answers[_key(inputs)].result()

    def predictors(self) -> list[Any]:
        """Those of the program."""
        return self.program.predictors()

    def deepcopy(self) -> Any:
        """A copy of the program itself."""
        return self.program.deepcopy()

    def bill(self) -> tuple[int, int]:
        """Calls and tokens; waits until all that was begun is answered."""
        wait(self._answers.values())
        return len(self._tokens), sum(self._tokens)


class Asking:
    """Who is being asked, and the bill as it would be if they had been asked one after another."""

    def __init__(self, ledger: Ledger, threads: int) -> None:
        """Ask nobody yet; so many questions at a time, in the order in which they were begun."""
        self.spent = 0, 0
        """Calls and tokens of the whole compile after the last turn."""
        self._ledger, self._threads = ledger, threads
        self._pool: ThreadPoolExecutor | None = None
        self._open: dict[str, Asked] = {}
        self._lock = threading.Lock()

    def evaluating(self, more: int) -> None:
        """Tell the ledger that so many more evaluations are going on."""
        with self._lock:
            self._ledger.evaluating += more

    def opened(self, program: Any, name: str) -> Asked:
        """The program with that name, which may have been opened before its turn."""
        if name not in self._open:
            self._pool = self._pool or ThreadPoolExecutor(self._threads + self._threads // SPARE)
            self._open[name] = Asked(program, name, self._pool)
            self.evaluating(1)
        return self._open[name]

    @contextmanager
    def turn(self, program: Any, name: str) -> Generator[Asked]:
        """A program whose turn it is. Nothing of it is on its way afterwards; after an error nothing more is asked."""
        if name not in self._open:
            self.spent = self._ledger.calls, self._ledger.tokens
        try:
            yield self.opened(program, name)
            calls, tokens = self._open[name].bill()
            self.spent = self.spent[0] + calls, self.spent[1] + tokens
        except BaseException:
            self._close(*self._open)
            raise
        self._close(name)

    def _close(self, *names: str) -> None:
        for name in names:
            del self._open[name]
            self.evaluating(-1)
        if self._pool and not self._open:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _key(inputs: Mapping[str, Any]) -> str:
    return repr(sorted(inputs.items()))
