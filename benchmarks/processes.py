"""Runs a piece of Python in fresh processes, and says what it cost above a bare interpreter."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = 7
PEAK_FILE = "REFLEX_BENCH_PEAK"
TELL_PEAK = f"""
import atexit, os
def tell():
    try:
        with open("/proc/self/status") as status:
            kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        import resource
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if os.uname().sysname == "Darwin" else 1)
    with open(os.environ["{PEAK_FILE}"], "w") as file:
        file.write(str(kib / 1024))
atexit.register(tell)
"""
"""Leaves the peak of a process in a file as it ends. On Linux `ru_maxrss` would start at that of the parent."""


@dataclass(frozen=True)
class Cost:
    """Medians over fresh processes."""

    seconds: float
    """Wall time from start to exit."""
    peak_mib: float
    """Largest resident set."""

    def above(self, bare: Cost) -> Cost:
        """What is left without the bare interpreter; never below a tenth of a millisecond and of a MiB."""
        return Cost(max(self.seconds - bare.seconds, 1e-4), max(self.peak_mib - bare.peak_mib, 0.1))


def costs(commands: dict[str, list[str]], runs: int) -> dict[str, Cost]:
    """The cost of each command, run in turns so that a busy moment of the machine hits all alike.

    Raises:
        SystemExit: A command failed; says what it wrote.
    """
    for command in commands.values():
        _run(command)  # warm: byte code and disk cache
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            taken[name].append(_run(command))
    return {
        name: Cost(median(one.seconds for one in each), median(one.peak_mib for one in each))
        for name, each in taken.items()
    }


def python(code: str, *arguments: str) -> list[str]:
    """The command that runs code in a fresh interpreter and tells its peak."""
    return [sys.executable, "-c", f"{TELL_PEAK}\n{code}", *arguments]


def _run(command: list[str]) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        peak = Path(folder) / "peak"
        env = {**os.environ, PEAK_FILE: str(peak)}
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"a process failed: {done.stderr}")
        return Cost(seconds, float(peak.read_text()))


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--runs", type=int, default=RUNS, help=f"fresh processes of each kind (default {RUNS})")
    return made


def add_artifact(made: argparse.ArgumentParser) -> None:
    """The argument that names a program file."""
    made.add_argument("artifact", nargs="?", type=Path, help="program file (default: the newest of root_cause)")


def artifact_path(given: Path | None) -> Path:
    """The program file named, or the newest of the root-cause programs.

    Raises:
        SystemExit: There is none.
    """
    if given:
        return given.resolve()
    found = [path for path in (ROOT / "programs" / "root_cause").glob("*.json") if path.name != "current.json"]
    if not found:
        raise SystemExit("programs/root_cause/ holds no program; compile one or name a file")
    return max(found, key=lambda path: (path.stat().st_mtime, path.name))


def show(result: dict[str, Any], as_json: bool) -> None:
    """Print a result: one JSON object, or a line for each number."""
    if as_json:
        print(json.dumps(result))
        return
    width = max(map(len, result))
    for name, value in result.items():
        print(f"{name:<{width}}  {f'{value:.4g}' if isinstance(value, float) else value}")
