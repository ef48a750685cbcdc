"""Recording costs the agent nothing but time, and little of that; what could not be written is counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.recorder.spool import Spool
from tests.recorder.spooled import FAILURE, SECRET, Hunter, events, run

ULID = re.compile(r"evt_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def test_an_event_is_recorded_with_id_and_time(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "new" / "home", Hunter())
    before = time.time_ns() // 1000
    given = recorder.record(FAILURE)
    (told,) = events(tmp_path / "new" / "home")
    assert ULID.fullmatch(given)
    assert before <= told["at"] <= time.time_ns() // 1000
    assert told == {"id": given, "at": told["at"], **FAILURE}
    assert (recorder.kind, recorder.fallback, recorder.lost, recorder.why) == ("mapped", "", 0, "")
    recorder.close()


def test_ids_and_times_of_others_are_kept_if_they_are_such(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Hunter())
    assert recorder.record({**FAILURE, "id": "f-17", "at": 1}) == "f-17"
    odd: list[dict[str, Any]] = [{"id": ""}, {"id": "x" * 65}, {"id": 7}, {"id": 'a"b'}, {"at": -1}, {"at": True}]
    assert all(ULID.fullmatch(recorder.record({**FAILURE, **each})) for each in odd)
    told = events(tmp_path)
    assert (told[0]["id"], told[0]["at"]) == ("f-17", 1)
    assert all(ULID.fullmatch(each["id"]) and each["at"] > 10**15 for each in told[1:])
    recorder.close()


def test_secrets_are_taken_out_before_anything_is_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Hunter())
    recorder.record({**FAILURE, "task": SECRET})
    recorder.close()
    assert all(SECRET.encode() not in path.read_bytes() for path in Spool(tmp_path).pending())
    assert events(tmp_path)[0]["redacted"] == {"password": 1}


class Blind(Hunter):
    """A redaction that fails."""

    def redact_value(self, value: Any) -> tuple[Any, dict[str, int]]:
        raise RuntimeError("cannot look")


def test_what_cannot_be_redacted_is_lost_and_not_leaked(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Blind())
    recorder.record({**FAILURE, "task": SECRET})
    recorder.record(FAILURE)
    assert (recorder.lost, recorder.why) == (1, "RuntimeError: cannot look")
    first, loss = events(tmp_path)
    assert (first["task"], loss.keys(), loss["lost"]) == (FAILURE["task"], {"lost", "at"}, recorder.lost)
    recorder.close()


class UntellableError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError


class Refusing(dict[str, Any]):
    """An event that gives nothing away."""

    def get(self, key: str, default: Any = None) -> Any:
        raise UntellableError


@pytest.mark.parametrize("event", [None, 7, Refusing()])
def test_what_is_no_event_is_counted(tmp_path: Path, event: Any) -> None:
    recorder = Recorder(tmp_path, Hunter())
    assert ULID.fullmatch(recorder.record(event))
    assert recorder.lost == 1
    assert recorder.why.startswith(("AttributeError: ", "UntellableError"))
    recorder.close()


def test_a_home_that_cannot_be_written_costs_the_events_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"a file")
    recorder = Recorder(tmp_path / "home", Hunter())
    assert all(ULID.fullmatch(recorder.record(FAILURE)) for _ in range(100))
    assert (recorder.kind, recorder.lost) == ("none", 100)
    assert "home" in recorder.why
    recorder.flush()
    recorder.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    recorder = Recorder(tmp_path, Hunter())
    recorder.record(FAILURE)
    assert (recorder.kind, recorder.lost) == ("none", 1)


def test_threads_record_at_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Hunter())
    given: list[str] = []

    def record() -> None:
        given.extend([recorder.record(FAILURE) for _ in range(500)])

    threads = [threading.Thread(target=record) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert sorted(told["id"] for told in events(tmp_path)) == sorted(given)
    recorder.close()


PROCESSES = """
import os, sys
from pathlib import Path
from dspy_reflex.recorder.recorder import Recorder
from tests.recorder.spooled import FAILURE, Hunter
recorder = Recorder(Path(sys.argv[1]), Hunter())
for n in range(8):
    if os.fork() == 0:
        for m in range(400):
            recorder.record({**FAILURE, "id": f"evt_{n}_{m}"})
        os._exit(recorder.lost)
for n in range(8):
    assert os.wait()[1] == 0
"""


def test_eight_processes_record_at_once(tmp_path: Path) -> None:
    run(PROCESSES, tmp_path)
    assert sorted(told["id"] for told in events(tmp_path)) == sorted(
        f"evt_{n}_{m}" for n in range(8) for m in range(400)
    )


IDS = """
import os
from dspy_reflex.ids import new_id
told, tell = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.write(tell, "".join(new_id("x") + "\\n" for _ in range(20)).encode())
        os._exit(0)
for _ in range(4):
    os.wait()
os.close(tell)
print(os.read(told, 65536).decode(), end="")
"""


def test_children_make_ids_of_their_own() -> None:
    """The last 12 characters are chance."""
    chance = [line[-12:] for line in run(IDS).stdout.splitlines()]
    assert len(set(chance)) == len(chance) == 80


LIGHT = """
import json, sys
from pathlib import Path
from dspy_reflex.recorder.recorder import Recorder
from tests.recorder.spooled import FAILURE
from dspy_reflex.recorder.spool import Spool
recorder = Recorder(Path(sys.argv[1]))
recorder.record(FAILURE)
recorder.record({**FAILURE, "context": {"authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", 1: object()}})
assert recorder.lost == 0, recorder.why
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_recording_imports_nothing_heavy(tmp_path: Path) -> None:
    imported = set(json.loads(run(LIGHT, tmp_path).stdout))
    assert imported & {"pydantic", "sqlalchemy", "asyncio", "httpx", "click", "rich", "dspy", "numpy", "ulid"} == set()
    assert "orjson" in imported
    assert len(events(tmp_path)) == 2


TRACED = """
import os, sys
from pathlib import Path
from dspy_reflex.recorder.recorder import Recorder
from tests.recorder.spooled import FAILURE, Hunter
recorder = Recorder(Path(sys.argv[1]), Hunter())
for _ in range(500):
    recorder.record(FAILURE)
os.getppid()
for _ in range(2000):
    recorder.record(FAILURE)
os.getppid()
"""
MEMORY = {"brk", "mmap", "munmap", "madvise", "mremap"}
"""What the interpreter asks the kernel for now and then, whatever it runs."""


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_recording_makes_no_system_call(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    code = f"import os; os.execvp('strace', ['strace', '-o', {str(log)!r}, sys.executable, *sys.argv[1:]])"
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})"
    try:
        run(code, "-c", f"{path}\n{TRACED}", tmp_path / "home")
    except AssertionError as error:
        pytest.skip(f"strace does not work here: {error}")
    calls = [line.partition("(")[0] for line in log.read_text(encoding="utf-8").splitlines()]
    first, last = (at for at, call in enumerate(calls) if call == "getppid")
    assert [call for call in calls[first + 1 : last] if call not in MEMORY] == []
    assert len(events(tmp_path / "home")) == 2500
