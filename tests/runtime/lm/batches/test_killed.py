"""A process that is killed outright, at every moment that could cost money twice, and started again."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from dspy_reflex.runtime.lm.batches import api, run
from dspy_reflex.runtime.lm.claude import Claude
from tests.runtime.lm.batch_server import asked, batch_server, echo
from tests.runtime.lm.loopback import KEY, error

TEXTS = [f"question {number}" for number in range(8)]
MOMENTS = (
    ("before create", 1),  # the first of two submissions has not arrived
    ("after create", 1),  # it has, and nobody will ever be told
    ("after retrieve", 1),  # while it is looked for
    ("after create", 1),  # likewise the second one
    ("before results", 2),  # both known; the first results were those of the look
    ("after results", 2),  # those of the first batch on disk
    ("before create", 1),  # asking again what failed: not arrived
    ("after create", 1),
    ("after results", 2),  # nothing left but to read them
)
"""What the server is at, and for which time in the life of a process, when that is killed."""


def work(url: str, folder: Path) -> None:
    """What each process does."""
    api.MAX_REQUESTS, run.FIRST_POLL_S, run.LONGEST_POLL_S = 5, 0.001, 0.01
    model = Claude("anthropic/claude-test", url=url, key=KEY, attempts=2)
    chats = [[{"role": "user", "content": text}] for text in TEXTS]
    answers = run.complete_all(model, chats, folder / "batch.json", lambda _: None)
    (folder / "answers.json").write_text(json.dumps([one and one.text for one in answers]))


def test_killed_at_every_moment_it_asks_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL from inside the server, so that the moment is exact; one process a moment, then one that finishes."""
    processes = multiprocessing.get_context("forkserver")  # each its own, but the SDK is imported once
    processes.set_forkserver_preload(["anthropic", __name__])
    fates = iter([error(500)])
    with batch_server(
        lambda params: next(fates, echo(params)) if asked(params) == TEXTS[2] else echo(params)
    ) as server:
        for moment in [*MOMENTS, None]:
            process = processes.Process(target=work, args=(server.url, tmp_path))
            server.watch = killing(process, *moment) if moment else lambda _: None
            process.start()
            process.join(timeout=60)
            assert process.exitcode == (-signal.SIGKILL if moment else 0), moment
    assert json.loads((tmp_path / "answers.json").read_text()) == TEXTS
    assert server.submitted == {text: 2 if text == TEXTS[2] else 1 for text in TEXTS}


def killing(process: BaseProcess, moment: str, times: int) -> Callable[[str], None]:
    """Kill a process at a moment of the server's; what it had asked for is neither done nor answered from there."""
    left = [times]

    def watch(what: str) -> None:
        left[0] -= what == moment
        if not left[0]:
            os.kill(process.pid or 0, signal.SIGKILL)
            raise ConnectionAbortedError

    return watch
