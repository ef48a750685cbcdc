"""What `doctor` finds: each thing well, and each thing wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from dspy_reflex.clock import now
from dspy_reflex.errors import StoreError
from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.recorder.spool import Spool
from dspy_reflex.records.review import State
from dspy_reflex.stages.overview.doctor import AHEAD, Check, checkup
from dspy_reflex.stages.overview.status import status
from dspy_reflex.store import outcomes, proposals
from dspy_reflex.store.ingest import ingest
from dspy_reflex.store.schema import micros, quarantine
from dspy_reflex.store.store import Store
from dspy_reflex.targets.block import with_rules
from dspy_reflex.targets.rule import RuleLine
from tests.store.events import event, filed

STRAY = "worker-1-1700000000000000000-0.jsonl"
"""A spool file of a process that is gone."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def checks(store: Store, home: Path, recorder: Callable[[Path], Any] = Recorder) -> dict[str, Check]:
    """What is found, by name; what was recorded is taken in before, as a workspace does."""
    made = recorder(home)
    ingest(store, home)
    found = checkup(home, lambda: store, lambda: made)
    made.close()
    return {one.name: one for one in found}


def test_a_new_workspace_is_well_and_nothing_is_left_in_it(store: Store, home: Path) -> None:
    found = checks(store, home)
    assert {one.state for one in found.values()} == {"well"}
    assert {"recorder", "disk", "store", "spool", "quarantine", "lost", "clock", "patches"} == set(found)
    assert "revision" in found["store"].told
    assert Spool(home).pending() == []


def test_torn_and_foreign_lines_of_a_spool_file_are_shown_with_their_place(store: Store, home: Path) -> None:
    spool = Spool(home)
    spool.folder.mkdir(parents=True)
    good = b'{"id":"evt_1","at":1,"agent_id":"a","ok":true}\n'
    (spool.folder / STRAY).write_bytes(
        good + b"null\n[1]\n" + b'{"id": 3}\n' + b"\xff\xfe\n" + good.replace(b"_1", b"_2") + b'{"id"'
    )
    checked = checks(store, home)["quarantine"]
    assert checked.state == "wrong"
    assert checked.told.startswith("5 pieces")
    assert all(STRAY in detail and "at byte" in detail for detail in checked.details)
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM outcomes").scalar() == 2


def test_what_could_not_be_read_long_ago_is_told_and_no_longer_wrong(store: Store, home: Path) -> None:
    spool = Spool(home)
    spool.folder.mkdir(parents=True)
    (spool.folder / STRAY).write_bytes(b"null\n")
    assert checks(store, home)["quarantine"].state == "wrong"
    with store.write() as connection:
        connection.execute(update(quarantine).values(at=now() - timedelta(days=8)))
    assert checks(store, home)["quarantine"].state == "note"


def test_a_stray_file_in_the_spool_is_named(store: Store, home: Path) -> None:
    Spool(home).folder.mkdir(parents=True)
    (Spool(home).folder / "notes.txt").write_text("hello")
    checked = checks(store, home)["spool"]
    assert (checked.state, "notes.txt" in checked.details[0]) == ("note", True)


def test_a_home_that_is_a_file_can_record_nothing(store: Store, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    checked = checks(store, home)["recorder"]
    assert (checked.state, "nothing can be recorded" in checked.told) == ("wrong", True)


@pytest.mark.parametrize(("kind", "state"), [("append", "note"), ("none", "wrong"), ("mapped", "well")])
def test_the_kind_of_recorder_is_told_and_why(store: Store, home: Path, kind: str, state: str) -> None:
    class Told:
        fallback = "no locks here"
        why = ""

        def __init__(self, _: Path) -> None:
            self.kind = kind

        def close(self) -> None:
            pass

    checked = checks(store, home, Told)["recorder"]
    assert checked.state == state
    assert (kind == "mapped") is ("no locks here" not in checked.told)


def test_events_that_were_lost_are_told_as_soon_as_something_can_be_written(store: Store, home: Path) -> None:
    class Wary:
        """A redaction that fails at some texts."""

        def clears(self, payload: bytes) -> bool:
            if b"bad" in payload:
                raise RuntimeError
            return True

        def redact_value(self, value: Any) -> tuple[Any, dict[str, int]]:
            return value, {}

    recorder = Recorder(home, Wary())
    for task in ("good", "bad", "bad", "good", "good", "bad"):
        recorder.record({"agent_id": "a", "ok": True, "task": task})
    recorder.close()
    assert recorder.lost == 3
    found = checks(store, home)["lost"]
    assert (found.state, found.told.startswith("2 events could not be written, 2 of them")) == ("wrong", True)
    checks(store, home)
    assert (status(store).lost, status(store).outcomes, status(store).quarantined) == (2, 3, 0)


def test_a_store_that_cannot_be_opened_is_one_thing_of_several(home: Path) -> None:
    def closed() -> Store:
        raise StoreError("the database is away; start it")

    recorder = Recorder(home)
    found = {one.name: one for one in checkup(home, closed, lambda: recorder)}
    recorder.close()
    assert (found["store"].state, found["store"].told) == ("wrong", "the database is away; start it")
    assert found["recorder"].state == "well"


def test_an_outcome_of_tomorrow_means_that_clocks_differ(store: Store, home: Path) -> None:
    with store.write() as connection:
        outcomes.take_in(connection, [event(at=micros(now() + AHEAD + timedelta(minutes=1)))])
    assert checks(store, home)["clock"].state == "wrong"


def standing(store: Store, file: Path, state: State = "applied") -> str:
    """A rule that should stand in a file; its id."""
    one = filed("evt_1").model_copy(update={"file": str(file), "state": state})
    with store.write() as connection:
        proposals.file(connection, one, actor="propose")
    content = with_rules(None, [RuleLine(one.id, one.rule, now().date())], file.name)
    assert content is not None
    file.write_bytes(content)
    return one.id


def damaged(file: Path, how: str) -> None:
    text = file.read_text()
    match how:
        case "gone":
            file.unlink()
        case "reworded":
            file.write_text(text.replace("wait and retry", "give up"))
        case "untidy":
            file.write_text(text.replace("- [", "-  [", 1))
        case "torn":
            file.write_text(text.replace("<!-- reflex:end -->", ""))
        case "folder":
            file.unlink()
            file.mkdir()
        case _:
            file.write_text("Written above.\n" + text)


@pytest.mark.parametrize("how", ["gone", "reworded", "untidy", "torn", "folder"])
def test_a_rule_file_that_is_not_as_it_was_left_is_wrong(store: Store, home: Path, tmp_path: Path, how: str) -> None:
    file = tmp_path / "TOOLS.md"
    standing(store, file)
    assert checks(store, home)[str(file)].state == "well"
    damaged(file, how)
    checked = checks(store, home)[str(file)]
    assert (checked.state, len(checked.details) > 0) == ("wrong", True)


def test_what_people_write_around_the_block_is_theirs(store: Store, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "TOOLS.md"
    standing(store, file)
    with_rule = file.read_bytes()
    file.write_bytes(b"# Tools" + os.linesep.encode() + with_rule.replace(b" new -->", b" -->"))
    assert checks(store, home)[str(file)].state == "well"


def test_rules_that_nobody_applied_are_looked_for_nowhere(store: Store, home: Path, tmp_path: Path) -> None:
    standing(store, tmp_path / "TOOLS.md", "pending")
    assert str(tmp_path / "TOOLS.md") not in checks(store, home)


def test_a_half_done_patch_is_wrong(store: Store, home: Path) -> None:
    (home / "patches").mkdir(parents=True)
    (home / "patches" / "intent.json").write_text("{}")
    assert checks(store, home)["patches"].state == "wrong"
