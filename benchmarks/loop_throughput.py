"""What the store's side of the loop takes with a million outcomes in it: taking in, diagnosing, and `status`.

    python benchmarks/loop_throughput.py                    on SQLite, some minutes
    python benchmarks/loop_throughput.py --postgresql       on a server of its own

Goals: 300 diagnoses a second with the offline program, each a new question; `status` within 100 ms on SQLite and 300 ms
on PostgreSQL. A twentieth of the outcomes are failures, of 50 agents over 30 days; their texts are those of the bundled
failures, each with words of its own where no failure may repeat another.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

from processes import show

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.ids import new_id
from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.runtime.program import load_program
from dspy_reflex.stages.diagnosing.stored import Wanted, diagnose_stored
from dspy_reflex.stages.overview.status import status
from dspy_reflex.store.ingest import ingest
from dspy_reflex.store.outcomes import Event, take_in
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store

ROOT = Path(__file__).parents[1]
AGENTS, DAYS, FAILED_OF = 50, 30, 20
AT_ONCE = 5000
LOOKS = 20
DAY_US = 86_400_000_000
RANDOM = random.Random(20261121)
WORDS = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split()


def main() -> None:
    """Measure and tell."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--events", type=int, default=1_000_000, help="outcomes in the store (default: a million)")
    made.add_argument("--spooled", type=int, default=100_000, help="outcomes taken in from the spool")
    made.add_argument("--failures", type=int, default=3_000, help="failures diagnosed, each a new question")
    made.add_argument("--postgresql", action="store_true", help="on PostgreSQL instead of SQLite")
    made.add_argument("--json", action="store_true", help="print JSON")
    options = made.parse_args()
    place = Path(tempfile.mkdtemp())
    try:
        with _url(place, postgresql=options.postgresql) as url, Store(url) as store:
            result = {"benchmark": "loop_throughput", "store": url.partition(":")[0], "events": options.events}
            show(result | _measured(store, place, options), options.json)
    finally:
        shutil.rmtree(place)


@contextmanager
def _url(place: Path, *, postgresql: bool) -> Generator[str]:
    if not postgresql:
        yield f"sqlite:///{place / 'store.db'}"
        return
    from tests import postgres

    with postgres.server() as url:
        yield postgres.database(url)


def _measured(store: Store, place: Path, options: Any) -> dict[str, Any]:
    loaded_s = _load(store, _events(options.events))
    recorded_s, taken_s = _spool(store, place / "home", options.spooled)
    new_s, new = _diagnose(store, options.failures, repeats=1)
    repeated_s, repeated = _diagnose(store, options.failures, repeats=10)
    first_ms, looks_ms = _looks(lambda: status(store))
    agents = [f"agent-{n}" for n in range(5)]
    _, some_ms = _looks(lambda: status(store, since=now(), agents=agents))
    return {
        "loaded_per_s": options.events / loaded_s,
        "recorded_per_s": options.spooled / recorded_s,
        "taken_in_per_s": options.spooled / taken_s,
        "diagnosed_per_s": new[0] / new_s,
        "questions": new[1],
        "repeats_diagnosed_per_s": repeated[0] / repeated_s,
        "questions_of_repeats": repeated[1],
        "status_first_ms": first_ms,
        "status_ms": looks_ms,
        "status_of_five_agents_ms": some_ms,
    }


def _events(number: int) -> Iterator[Event]:
    """Outcomes over the past, the oldest first, none of them of the last two days."""
    rows, start = cycle(_rows()), micros(now()) - (DAYS + 2) * DAY_US
    for n in range(number):
        at = start + n * (DAYS * DAY_US // number)
        who = {"id": new_id("evt"), "at": at, "agent_id": f"agent-{RANDOM.randrange(AGENTS)}"}
        yield {**who, "ok": False, **next(rows)} if n % FAILED_OF == 0 else {**who, "ok": True, "task": "a task"}


def _rows() -> list[dict[str, Any]]:
    names = ("task", "expected_outcome", "actual_outcome", "severity", "context")
    files = (ROOT / "datasets" / "failures" / f"{split}.jsonl" for split in ("train", "val", "test"))
    rows = (json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return [{name: row.get(name) for name in names} for row in rows]


def _load(store: Store, events: Iterator[Event]) -> float:
    started = time.perf_counter()
    while part := list(islice(events, AT_ONCE)):
        with store.write() as connection:
            take_in(connection, part)
    return time.perf_counter() - started


def _spool(store: Store, home: Path, number: int) -> tuple[float, float]:
    """Seconds to record so many outcomes, and to take them in."""
    recorder = Recorder(home)
    events = [{name: value for name, value in event.items() if name not in ("id", "at")} for event in _events(number)]
    recorded_s = _timed(lambda: [recorder.record(event) for event in events])
    recorder.close()
    taken_s = _timed(lambda: ingest(store, home))
    if recorder.lost:
        raise SystemExit(f"{recorder.lost} events were lost: {recorder.why}")
    return recorded_s, taken_s


def _diagnose(store: Store, number: int, *, repeats: int) -> tuple[float, tuple[int, int]]:
    """Seconds to diagnose so many failures, of which each question occurs so often; diagnoses and questions."""
    agent, rows, events = f"diagnosed-{repeats}", cycle(_rows()), list[Event]()
    for row in islice(rows, number // repeats):
        own = " ".join(RANDOM.sample(WORDS, 6))
        for _ in range(repeats):
            text = f"{row['actual_outcome']} {own} {RANDOM.randrange(10_000, 99_999)}"
            who = {"id": new_id("evt"), "at": micros(now()), "agent_id": agent, "ok": False}
            events.append({**row, **who, "actual_outcome": text})
    _load(store, iter(events))
    program, wanted = load_program("root_cause"), Wanted(agents=(agent,))
    started = time.perf_counter()
    done = diagnose_stored(store, Settings(), program, wanted)
    return time.perf_counter() - started, (len(done.made), done.calls)


def _looks(look: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the first look and of the median one."""
    taken = [_timed(look) * 1000 for _ in range(LOOKS)]
    return taken[0], median(taken)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
