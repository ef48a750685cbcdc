"""What was acknowledged survives SIGKILL at any moment, once, and so do its neighbours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspy_reflex.recorder.spool import Spool
from tests.recorder.spooled import payloads, run

KILLS = 50
KILLED = """
import json, mmap, os, random, signal, struct, sys, time
from pathlib import Path
from dspy_reflex.recorder.recorder import Recorder
from tests.recorder.spooled import FAILURE, Hunter
if sys.argv[2] == "append":
    def refuse(*_): raise OSError(95, "Operation not supported")
    os.posix_fallocate = refuse
rng = random.Random(7)
texts = ["x" * rng.choice([10, 500, 20_000]) for _ in range(50)]
acknowledged = mmap.mmap(-1, 8)  # shared with the child, and outlives it
seen = []
for kill in range(int(sys.argv[3])):
    acknowledged[:] = bytes(8)
    child = os.fork()
    if child == 0:
        recorder = Recorder(Path(sys.argv[1]), Hunter())
        n = 0
        while True:
            recorder.record({**FAILURE, "id": f"evt_{kill}_{n}", "task": texts[n % 50]})
            n += 1
            acknowledged[:] = struct.pack("<q", n)
    while kill % 5 and not any(acknowledged[:]):  # one in five may die before it has begun
        time.sleep(0.0005)
    time.sleep(rng.uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    seen.append(struct.unpack("<q", acknowledged[:])[0])
print(json.dumps([seen, texts]))
"""


@pytest.mark.parametrize(("kind", "kills"), [("mapped", KILLS), ("append", 10)])
def test_no_acknowledged_event_is_lost_at_a_kill(tmp_path: Path, kind: str, kills: int) -> None:
    acknowledged, texts = json.loads(run(KILLED, tmp_path, kind, kills).stdout)
    found, bad = payloads(tmp_path)
    by_kill: dict[int, list[int]] = {}
    for payload in found:
        event = json.loads(payload)
        _, kill, number = event["id"].split("_")
        assert event["task"] == texts[int(number) % 50]
        by_kill.setdefault(int(kill), []).append(int(number))
    for kill, number in enumerate(acknowledged):
        there = by_kill.get(kill, [])
        assert there == list(range(len(there)))
        assert number <= len(there) <= number + 1, "one may have been written and not yet acknowledged"
    assert sum(map(bool, acknowledged)) >= kills * 4 // 5
    assert len(bad) <= kills
    files = [path for path in Spool(tmp_path).pending() if path.stat().st_size]
    assert {path.suffix for path in files} == {".seg" if kind == "mapped" else ".jsonl"}
    assert not any(Spool(tmp_path).is_alive(path) for path in files)
