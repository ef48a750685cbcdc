"""What recording one event costs the agent that waits for it, redaction included, beside ways that others have.

    python -m benchmarks.log_latency                      in half a minute
    python -m benchmarks.log_latency --peers PYTHON       with self-improving-loop and rsi-loop, as that interpreter has them

A million events lie in the spool before the first one is timed. Every case is timed idle and with one thread that never
waits, in turns, so that a busy moment of the machine hits all alike. The naive way is what most loggers do: open the
file, lock it, append a line of JSON, close it. At the end eight processes record at once, and all is read back.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dspy_reflex.recorder.event import Patterns, encode
from dspy_reflex.recorder.outlet import Outlet
from dspy_reflex.recorder.owner import FOLDER
from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.recorder.spool import Spool

PRIOR, EVENTS, TURNS = 1_000_000, 20_000, 5
PROCESSES, EACH = 8, 10_000
CLEAN: dict[str, Any] = {
    "agent_id": "support-7",
    "parent_agent_id": "support",
    "ok": False,
    "task": "Refund the order of the customer who wrote this morning and tell them when the money will be there",
    "expected_outcome": "The order is refunded and a mail says so",
    "actual_outcome": "The tool that refunds timed out after 30 s; the agent wrote that all was done and closed the case",
    "severity": "high",
    "context": {"tool": "refund_order", "attempts": 3, "status": 504, "retry": False},
}
SECRET = {
    **CLEAN,
    "context": {"tool": "refund_order", "status": 401, "header": "Authorization: Bearer 7f9Kq2LmX0pRt4Vw8ZbY"},
}
CASES = {"clean": CLEAN, "secret": SECRET, "success": {**CLEAN, "ok": True}}

CHILD = """
import sys
from pathlib import Path
from benchmarks.log_latency import CLEAN
from dspy_reflex.recorder.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    recorder.record(CLEAN)
raise SystemExit(recorder.lost)
"""

PEERS = """
import json, os, sys, tempfile, time

def timed(call, number):
    taken = []
    for _ in range(number):
        started = time.perf_counter_ns()
        call()
        taken.append(time.perf_counter_ns() - started)
    taken.sort()
    return {"p50_us": taken[number // 2] / 1e3, "p99_us": taken[number * 99 // 100] / 1e3}

found = {}
out, sys.stdout = sys.stdout, open(os.devnull, "w")
with tempfile.TemporaryDirectory() as folder:
    from self_improving_loop import SelfImprovingLoop
    loop = SelfImprovingLoop(data_dir=folder)
    def fail(): raise TimeoutError("The tool that refunds timed out after 30 s")
    found["self-improving-loop, a call that works"] = timed(
        lambda: loop.execute_with_improvement("support-7", "refund", lambda: "done"), 3000)
    found["self-improving-loop, one that fails after 3,000"] = timed(
        lambda: loop.execute_with_improvement("support-7", "refund", fail), 100)
with tempfile.TemporaryDirectory() as folder:
    from rsi_loop import Config, RSILoop
    observer = RSILoop(Config(data_dir=folder)).observer
    found["rsi-loop, record_simple"] = timed(
        lambda: observer.record_simple("refund", success=False, error="The tool timed out"), 5000)
out.write(json.dumps(found))
"""


def naive(path: Path) -> Callable[[Any], object]:
    """A line of JSON to a file that is opened, locked and closed for it."""
    import fcntl

    def record(event: Any) -> None:
        with path.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps({**event, "at": time.time()}) + "\n")

    return record


def fill(home: Path, events: int) -> None:
    """Lay events into a spool as a recorder does, without looking for secrets in each."""
    outlet = Outlet(home / FOLDER)
    payload = encode(CLEAN, "evt_00000000000000000000000000", 0, Patterns())
    for _ in range(events):
        outlet.write(payload)
    outlet.close()


def timed(record: Callable[[Any], object], event: Any, number: int) -> list[int]:
    """Nanoseconds of each of so many calls."""
    taken: list[int] = []
    for _ in range(number):
        started = time.perf_counter_ns()
        record(event)
        taken.append(time.perf_counter_ns() - started)
    return taken


@contextmanager
def busy_thread() -> Generator[None]:
    """A thread that wants the interpreter all the time."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def figures(taken: list[int]) -> dict[str, float]:
    """Median, 99th percentile and longest, in microseconds."""
    taken.sort()
    at = {"p50_us": len(taken) // 2, "p99_us": len(taken) * 99 // 100, "max_us": -1}
    return {name: taken[place] / 1000 for name, place in at.items()}


def latencies(home: Path, events: int, turns: int) -> dict[str, dict[str, float]]:
    """Each case idle and busy, in turns; the naive way takes a twentieth of the events, as it waits so long."""
    recorder = Recorder(home)
    append = naive(home / "naive.jsonl")
    taken: dict[str, list[int]] = {}
    for _ in range(turns):
        for load in ("idle", "busy"):
            with busy_thread() if load == "busy" else nullcontext():
                for name, event in CASES.items():
                    taken.setdefault(f"{name}, {load}", []).extend(timed(recorder.record, event, events // turns))
                few = timed(append, CLEAN, max(1, events // turns // 20))
                taken.setdefault(f"naive append, {load}", []).extend(few)
    recorder.close()
    if recorder.lost or recorder.kind != "mapped":
        raise SystemExit(f"{recorder.lost} lost, {recorder.kind}: {recorder.why} {recorder.fallback}")
    return {name: figures(each) for name, each in taken.items()}


def together(home: Path, processes: int, each: int) -> dict[str, float]:
    """Many processes at once, and what is in the spool after that."""
    started = time.perf_counter()
    command = [sys.executable, "-c", CHILD, str(home), str(each)]
    children = [
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) for _ in range(processes)
    ]
    lost = sum(child.wait() for child in children)
    seconds = time.perf_counter() - started
    there, bad = read(home)
    return {"events": processes * each, "there": there, "bad": bad, "told_lost": lost, "seconds": seconds}


def read(home: Path) -> tuple[int, int]:
    """Events and bad stretches of a spool."""
    spool, events, bad = Spool(home), 0, 0
    for path in spool.pending():
        page = spool.read(path, 0, 1000)
        while True:
            events, bad = events + len(page.events), bad + len(page.bad)
            if page.at_end:
                break
            page = spool.read(path, page.next_offset, 1000)
    return events, bad


def peers(python: str) -> dict[str, dict[str, float]]:
    """What the packages of others take, in an interpreter that has them."""
    done = subprocess.run([python, "-c", PEERS], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{python}: {done.stderr}")
    return json.loads(done.stdout)


def table(found: dict[str, dict[str, float]]) -> str:
    """A line for each case."""
    lines = [f"{'':<50}{'p50 us':>10}{'p99 us':>12}{'max us':>12}"]
    for name, each in found.items():
        longest = f"{each['max_us']:>12,.0f}" if "max_us" in each else ""
        lines.append(f"{name:<50}{each['p50_us']:>10,.1f}{each['p99_us']:>12,.1f}{longest}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print; fail if an event was lost."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--peers", metavar="PYTHON", help="an interpreter with self-improving-loop and rsi-loop")
    made.add_argument("--prior", type=int, default=PRIOR, help=f"events before the first (default {PRIOR})")
    made.add_argument("--events", type=int, default=EVENTS, help=f"of each case (default {EVENTS})")
    made.add_argument(
        "--each", type=int, default=EACH, help=f"events of each of {PROCESSES} processes (default {EACH})"
    )
    options = made.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        fill(Path(folder), options.prior)
        found = latencies(Path(folder), options.events, TURNS)
        at_once = together(Path(other), PROCESSES, options.each)
    theirs = peers(options.peers) if options.peers else {}
    size = len(encode(CLEAN, "evt_00000000000000000000000000", 0, Patterns()))
    if options.json:
        print(json.dumps({"bytes": size, "prior": options.prior, "ours": found, "peers": theirs, "at_once": at_once}))
    else:
        print(f"an event of {size} bytes, {options.prior:,} before it\n{table({**found, **theirs})}")
        print(
            "{there:,.0f} of {events:,.0f} events of 8 processes there, {bad:.0f} bad, in {seconds:.1f} s".format(
                **at_once
            )
        )
    if at_once["there"] != at_once["events"] or at_once["bad"]:
        raise SystemExit("events were lost")


if __name__ == "__main__":
    main()
