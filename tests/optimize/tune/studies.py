"""Small studies: their options, a compile that is only pretended, and workers in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dspy_reflex.optimize.tune.attempt import Attempt, Found, Say
from dspy_reflex.optimize.tune.options import TuneOptions
from dspy_reflex.optimize.tune.outcome import Outcome, outcome
from dspy_reflex.optimize.tune.space import Point, Space
from dspy_reflex.optimize.tune.storage import Storage, open_storage
from dspy_reflex.optimize.tune.study import join
from dspy_reflex.optimize.tune.worker import Worker
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import ROOT

SPACE = Space(("labeled_few_shot", "bootstrap_few_shot"), ("offline",))
ONE = Space(("labeled_few_shot",), ("offline",))
HEARTBEAT_S = 1
OPENED: list[Storage] = []
"""What a test has opened and somebody has to close."""
WORKER = """
import sys
from pathlib import Path
from dspy_reflex.optimize.tune.study import tune
from tests.optimize.tune.studies import SPACE, options
data, storage, trials, out, lm = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
tune(options(Path(data), storage, int(trials), lm=lm), out=Path(out), say=lambda line: print(line, flush=True))
"""


def options(data: Path, storage: str, trials: int, *, space: Space = SPACE, lm: str = "offline") -> TuneOptions:
    """A study that notices a dead worker in seconds."""
    searched = Space(space.optimizers, (lm,))
    return TuneOptions(
        "root_cause", (data,), load_taxonomy(), searched, trials, storage, "a-study", heartbeat_s=HEARTBEAT_S
    )


def pretended(point: Point, run: str, say: Say) -> Found:
    """More demos are better and dearer; one optimizer is a little better."""
    demos = point.settings["max_demos"]
    score = demos / 100 + (0.1 if point.optimizer == "bootstrap_few_shot" else 0.0)
    told = {"run": run, "program": "root_cause@0", "calls": 7, "interval": [score - 0.1, score + 0.1]}
    return Found(score, 100.0 * demos, told)


class Study:
    """A study whose compiles are pretended."""

    def __init__(self, storage: str, trials: int, space: Space = SPACE) -> None:
        self.options = options(Path("nowhere"), storage, trials, space=space)
        self.storage = open_storage(storage, HEARTBEAT_S)
        OPENED.append(self.storage)
        self.config = self.options.config("nowhere", "0")
        self.study = join(self.options, self.storage, self.config)
        self.said: list[str] = []

    def worker(self, attempt: Attempt = pretended) -> Worker:
        """A worker that does this for each trial."""
        return Worker(self.study, self.storage, self.options.space, self.options.trials, attempt, self.said.append)

    @property
    def outcome(self) -> Outcome:
        """The study as it is now."""
        return outcome(self.study, self.options.trials)


def first_then(first: Callable[[Point, str, Say], Found]) -> Attempt:
    """One thing for the first trial, `pretended` for the others."""
    turns = iter([first])
    return lambda point, run, say: next(turns, pretended)(point, run, say)


def start(data: Path, storage: str, trials: int, out: Path, lm: str = "offline") -> subprocess.Popen[str]:
    """A worker in a process of its own that waits for a line on stdin before it joins."""
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(data), storage, str(trials), str(out), lm],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=out.parent, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert worker.stdout
    until(worker, "ready")
    return worker


def go(worker: subprocess.Popen[str]) -> None:
    """Let it join."""
    assert worker.stdin
    worker.stdin.write("\n")
    worker.stdin.flush()


def until(worker: subprocess.Popen[str], words: str) -> str:
    """Read what a worker says until it says this, and give that line."""
    assert worker.stdout
    heard: list[str] = []
    for line in worker.stdout:
        heard.append(line)
        if words in line:
            return line
    raise AssertionError("".join(heard))
