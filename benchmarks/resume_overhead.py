"""How many calls more does a compile make that is killed half-way and resumed? Goal: 2 %.

    python -m benchmarks.resume_overhead       writes experiments/resume-overhead, in a few minutes

The real command, killed by SIGKILL when the server has counted half of the calls that it makes undisturbed. The server
counts a question when it arrives: those that were on their way when the compile died, at most one a thread, are lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.model_server import ModelServer, serving
from dspy_reflex.files import write_atomic

ROOT = Path(__file__).parents[1]
OUT = Path("experiments/resume-overhead")
LATENCY_S = 0.02
THREADS = (1, 8)
KILLS = 3
LOOK_S = 0.005
"""How often the server is asked how far the compile is."""
GOAL = 0.02
COMPILE = ("compile", "root_cause", "--lm", "openai/gpt-4o-mini", "--dataset", str(ROOT / "datasets" / "failures"))


def main() -> None:
    """Kill, resume, count and write."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--kills", type=int, default=KILLS, help=f"kills with each number of threads (default {KILLS})")
    made.add_argument("--out", type=Path, default=OUT, help=f"folder for the outcome (default: {OUT})")
    options = made.parse_args()
    with serving() as server:
        found = [with_threads(server, threads, options.kills) for threads in THREADS]
    result = {"benchmark": "resume_overhead", "goal": GOAL, "latency_s": LATENCY_S, "threads": found}
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result, indent=1))
    if max(max(one["overhead"]) for one in found) > GOAL:
        raise SystemExit(f"a resumed compile made more than {GOAL:.0%} more calls")


def with_threads(server: ModelServer, threads: int, kills: int) -> dict[str, Any]:
    """Compile once undisturbed and then so often with a kill, always with so many questions at a time."""
    with tempfile.TemporaryDirectory() as folder:
        whole = _Compile(server, Path(folder), f"whole-{threads}", threads)
        program = whole.to_the_end()
        overheads: list[float] = []
        for kill in range(kills):
            killed = _Compile(server, Path(folder), f"killed-{threads}-{kill}", threads)
            killed.kill_at(whole.calls // 2)
            if killed.to_the_end("compile", "--resume", str(killed.run)) != program:
                raise SystemExit("a resumed compile ended with another program")
            overheads.append(round(killed.calls / whole.calls - 1, 4))
    return {"threads": threads, "calls": whole.calls, "overhead": overheads, "median": median(overheads)}


class _Compile:
    """One compile with a counter of its own."""

    def __init__(self, server: ModelServer, folder: Path, name: str, threads: int) -> None:
        self.run = folder / name
        self._server, self._name, self._folder = server, name, folder
        self._new = (*COMPILE, "--threads", str(threads), "--run", str(self.run))
        where = {"OPENAI_BASE_URL": server.url(name, LATENCY_S), "OPENAI_API_KEY": "sk-none"}
        self._environment = {**os.environ, **where}

    @property
    def calls(self) -> int:
        """What the server has counted of it."""
        return self._server.counts(self._name).calls

    def kill_at(self, calls: int) -> None:
        """Start it, and kill it when it has made so many calls."""
        process = self._started(*self._new)
        while self.calls < calls and process.poll() is None:
            time.sleep(LOOK_S)
        if process.poll() is not None:
            raise SystemExit(f"the compile ended before its call {calls}: {process.communicate()[1][-2000:]}")
        process.kill()
        process.communicate()

    def to_the_end(self, *arguments: str) -> str:
        """Run it, or go on with it; the name of the program that it made."""
        process = self._started(*(arguments or self._new))
        told, said = process.communicate()
        if process.returncode:
            raise SystemExit(f"the compile ended with {process.returncode}: {said[-2000:]}")
        return json.loads(told)["program"]

    def _started(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dspy_reflex", *arguments, "--out", str(self._folder / "out"), "--json"]
        return subprocess.Popen(
            command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


if __name__ == "__main__":
    main()
