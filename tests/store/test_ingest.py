"""From the spool into the store, exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from sqlalchemy import select

from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.store import outcomes
from dspy_reflex.store.counts import count, quarantined
from dspy_reflex.store.ingest import ingest
from dspy_reflex.store.outcomes import Query
from dspy_reflex.store.schema import quarantine, spool
from dspy_reflex.store.store import Store
from tests.store.events import event, good

DYING = """
import os, signal, sys
from pathlib import Path
from dspy_reflex.store import ingest as room
from dspy_reflex.store.store import Store
left = int(sys.argv[3])
put = room.put
def dying(*told):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    put(*told)
room.put, room.AT_ONCE = dying, 10
room.ingest(Store(sys.argv[1]), Path(sys.argv[2]))
"""


def test_everything_recorded_comes_in_once(store: Store, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    told = [event() if number % 3 else good() for number in range(300)]
    ids = [recorder.record(one) for one in told]
    first = ingest(store, tmp_path)
    again = ingest(store, tmp_path)
    ids.append(recorder.record(event()))
    recorder.close()
    last = ingest(store, tmp_path)
    assert (first.events, again.events, last.events) == (300, 0, 1)
    with store.read() as connection:
        counted = count(connection)
        assert counted.good + sum(counted.failures.values()) == len(set(ids)) == 301


def test_what_is_taken_in_leaves_no_file_and_no_place_behind(store: Store, tmp_path: Path) -> None:
    with_one = Recorder(tmp_path)
    with_one.record(event())
    with_one.close()
    ingest(store, tmp_path)
    assert [path.name for path in (tmp_path / "spool").iterdir() if not path.name.startswith(".")] == []
    with store.read() as connection:
        assert connection.execute(select(spool)).all() == []


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_reader_killed_between_pages_loses_and_doubles_nothing(
    store: Store, url: str, tmp_path: Path, moment: int
) -> None:
    recorder = Recorder(tmp_path)
    ids = {recorder.record(event()) for _ in range(35)}
    recorder.close()
    died = subprocess.run([sys.executable, "-c", DYING, url, str(tmp_path), str(moment)], env=os.environ, check=False)
    assert died.returncode == -signal.SIGKILL
    ingest(store, tmp_path)
    with store.read() as connection:
        assert {one.id for one in outcomes.failures(connection, Query())} == ids
        assert count(connection).failures == {"high": 35}


def test_what_is_no_event_is_set_aside_and_its_neighbours_come_in(store: Store, tmp_path: Path) -> None:
    bad = [b"null", b"[1]", b"{", b"\xff\xfe", b'{"id":"evt_x"}', orjson.dumps(event(severity="awful")), b""]
    fine = [event(), event()]
    name = _append_file(tmp_path)
    name.write_bytes(b"\n".join([orjson.dumps(fine[0]), *bad, orjson.dumps(fine[1])]) + b"\n")
    taken = ingest(store, tmp_path)
    with store.read() as connection:
        reasons = connection.scalars(select(quarantine.c.reason)).all()
        assert quarantined(connection) == taken.quarantined == len(reasons) >= 6
        assert {one.id for one in outcomes.failures(connection, Query())} == {one["id"] for one in fine}


def _append_file(home: Path) -> Path:
    """The name of a file as the recorder's plain appends have it, of an owner that is gone."""
    from dspy_reflex.recorder.owner import new_name

    folder = home / "spool"
    folder.mkdir()
    return folder / new_name(".jsonl")
