"""Who became current when: appended, never lost, and the way back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import ProgramError
from dspy_reflex.records.move import Action, Move
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact, dumps, read
from dspy_reflex.runtime.history import (
    HISTORY,
    LOCK,
    History,
    can_go_back,
    first,
    guide,
    history,
    note,
    promote,
    rollback,
)
from dspy_reflex.runtime.library import CURRENT, current, set_current
from tests.runtime.programs import published

ROOT = Path(__file__).parents[2]
MODEL = "offline/1"
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "action": st.sampled_from(get_args(Action)), "model": TEXT, "before": st.none() | TEXT,
    "after": TEXT, "reason": TEXT, "by": st.none() | TEXT, "partial": st.booleans(), "against": st.none() | TEXT,
    "dataset": st.none() | TEXT, "rows": st.none() | TEXT, "n": st.integers(0, 10**6),
    "margin": st.none() | st.floats(0, 1), "difference": st.none() | st.floats(-1, 1),
    "interval": st.none() | st.tuples(st.floats(-1, 0), st.floats(0, 1)), "mcnemar_p": st.none() | st.floats(0, 1),
}  # fmt: skip
MOVES = st.fixed_dictionaries(FIELDS).map(lambda fields: Move(**fields))

KILLED = """
import os, signal, sys
from pathlib import Path
from dspy_reflex.records.move import Move
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.history import promote
artifact = read(Path(sys.argv[2]))
sync, left = os.fsync, int(sys.argv[4])
def dying(handle):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    sync(handle)
os.fsync = dying
promote(Path(sys.argv[1]), artifact,
        Move(action="promote", model=artifact.model, before=sys.argv[3], after=artifact.version, reason="better"))
"""


def one(seed: int, model: str = MODEL) -> Artifact:
    """A program that differs from the others by its seed."""
    return published(model=model, seed=seed)


def moved(folder: Path, artifact: Artifact) -> Artifact:
    """The program, promoted over whatever is current."""
    before = current(folder, artifact.program).get(artifact.model)
    move = Move(action="promote", model=artifact.model, before=before, after=artifact.version, reason="it is better")
    promote(folder, artifact, move)
    return artifact


def now(folder: Path, model: str = MODEL) -> str:
    """The version that is current."""
    return current(folder, "root_cause")[model]


def actions(folder: Path) -> list[str]:
    """What was done, oldest first."""
    return [move.action for move in history(folder, "root_cause").moves]


@given(st.lists(MOVES, max_size=4))
@settings(max_examples=40)
def test_what_is_noted_is_read_back(tmp_path_factory: pytest.TempPathFactory, moves: list[Move]) -> None:
    """Line separators, quotes and all."""
    folder = tmp_path_factory.mktemp("library")
    for move in moves:
        note(folder, "root_cause", move)
    assert history(folder, "root_cause") == History(tuple(moves), ())


def test_a_line_is_plain_json_in_utc(tmp_path: Path) -> None:
    moved(tmp_path, one(1))
    moved(tmp_path, one(2))
    lines = (tmp_path / "root_cause" / HISTORY).read_text(encoding="utf-8").splitlines()
    last = json.loads(lines[1])
    assert (last["action"], last["from"], last["to"]) == ("promote", one(1).version, one(2).version)
    assert last["at"].endswith("Z")
    assert "by" not in last


def test_nothing_was_decided_where_there_is_no_history(tmp_path: Path) -> None:
    assert history(tmp_path / "none", "root_cause") == History((), ())


def test_the_first_program_of_a_model_becomes_current_and_no_later_one(tmp_path: Path) -> None:
    assert first(tmp_path, one(1))
    assert not first(tmp_path, one(2))
    assert first(tmp_path, one(3, "openai/x"))
    assert (now(tmp_path), now(tmp_path, "openai/x")) == (one(1).version, one(3, "openai/x").version)
    assert actions(tmp_path) == ["first", "first"]
    assert read(tmp_path / "root_cause" / f"{one(1).version}.json") == one(1)


def test_a_guide_becomes_current_with_a_line_and_writing_it_again_is_no_move(tmp_path: Path) -> None:
    """Nothing is compared: it says what the labels mean. The one before it can come back."""
    for number in (1, 2, 2):
        guide(tmp_path, one(number, ANY_MODEL), "fruit")
    assert now(tmp_path, ANY_MODEL) == one(2, ANY_MODEL).version
    assert actions(tmp_path) == ["guide", "guide"]
    assert read(tmp_path / "root_cause" / f"{one(2, ANY_MODEL).version}.json") == one(2, ANY_MODEL)
    assert rollback(tmp_path, "root_cause", ANY_MODEL).after == one(1, ANY_MODEL).version


def test_a_first_that_died_before_the_change_can_be_done_again(tmp_path: Path) -> None:
    """It is noted twice then, and is still no predecessor of itself."""
    reason = "the first program of its model"
    note(tmp_path, "root_cause", Move(action="first", model=MODEL, after=one(1).version, reason=reason))
    assert first(tmp_path, one(1))
    assert actions(tmp_path) == ["first", "first"]
    assert can_go_back(tmp_path, "root_cause") == []


def test_a_program_that_is_no_longer_what_was_compared_with_is_not_replaced(tmp_path: Path) -> None:
    """Somebody else promoted in the meantime."""
    moved(tmp_path, one(1))
    move = Move(action="promote", model=MODEL, before=None, after=one(2).version, reason="it is better")
    with pytest.raises(
        ProgramError, match=f"{one(1).version} is current for offline/1 by now, not none; promote again"
    ):
        promote(tmp_path, one(2), move)
    assert (now(tmp_path), actions(tmp_path)) == (one(1).version, ["promote"])
    assert not (tmp_path / "root_cause" / f"{one(2).version}.json").exists()


def test_going_back_twice_leads_to_the_one_before_the_one_before(tmp_path: Path) -> None:
    """And not to and fro between two."""
    first(tmp_path, one(1))
    moved(tmp_path, one(2))
    moved(tmp_path, one(3))
    move = rollback(tmp_path, "root_cause", MODEL, by="the night shift")
    assert (move.before, move.after, move.by) == (one(3).version, one(2).version, "the night shift")
    assert now(tmp_path) == one(2).version
    rollback(tmp_path, "root_cause", MODEL)
    assert now(tmp_path) == one(1).version
    assert actions(tmp_path) == ["first", "promote", "promote", "rollback", "rollback"]
    with pytest.raises(ProgramError, match="there is no program to go back to for offline/1"):
        rollback(tmp_path, "root_cause", MODEL)


def test_one_that_came_back_by_winning_again_is_left_for_the_one_it_beat(tmp_path: Path) -> None:
    for seed in (1, 2, 1):
        moved(tmp_path, one(seed))
    assert rollback(tmp_path, "root_cause", MODEL).after == one(2).version
    assert rollback(tmp_path, "root_cause", MODEL).after == one(1).version


def test_the_champion_from_before_there_was_a_history_can_come_back(tmp_path: Path) -> None:
    """The first line says what it replaced."""
    old = one(1)
    path = tmp_path / "root_cause" / f"{old.version}.json"
    path.parent.mkdir()
    path.write_text(dumps(old), encoding="utf-8")
    set_current(tmp_path, old)
    moved(tmp_path, one(2))
    assert rollback(tmp_path, "root_cause", MODEL).after == old.version


def test_one_made_current_by_hand_is_left_for_the_last_that_was_noted(tmp_path: Path) -> None:
    moved(tmp_path, one(1))
    set_current(tmp_path, one(2))
    assert rollback(tmp_path, "root_cause", MODEL).after == one(1).version


def test_models_go_their_own_ways(tmp_path: Path) -> None:
    for model in (MODEL, "openai/x"):
        moved(tmp_path, one(1, model))
    assert can_go_back(tmp_path, "root_cause") == []
    moved(tmp_path, one(2, "openai/x"))
    assert can_go_back(tmp_path, "root_cause") == ["openai/x"]
    rollback(tmp_path, "root_cause", "openai/x")
    assert (now(tmp_path), now(tmp_path, "openai/x")) == (one(1).version, one(1, "openai/x").version)


def test_a_refusal_changes_nothing_on_the_way_back(tmp_path: Path) -> None:
    moved(tmp_path, one(1))
    moved(tmp_path, one(2))
    for seed in (3, 1, 2):  # another one, the previous one, and a copy of the current one
        refused = Move(action="refuse", model=MODEL, before=one(2).version, after=one(seed).version, reason="worse")
        note(tmp_path, "root_cause", refused)
    assert rollback(tmp_path, "root_cause", MODEL).after == one(1).version


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_previous_program_that_is_gone_or_damaged_is_not_gone_back_to(tmp_path: Path, damage: str) -> None:
    moved(tmp_path, one(1))
    moved(tmp_path, one(2))
    path = tmp_path / "root_cause" / f"{one(1).version}.json"
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(path.read_text(encoding="utf-8").replace('"seed": 1', '"seed": 9'), encoding="utf-8")
    with pytest.raises(ProgramError, match=str(path)):
        rollback(tmp_path, "root_cause", MODEL)
    assert (now(tmp_path), actions(tmp_path)) == (one(2).version, ["promote", "promote"])


def test_a_test_set_is_counted_each_time_that_it_decided(tmp_path: Path) -> None:
    """Refusals have looked at it as well; for whatever model."""
    tests: tuple[tuple[Action, str | None], ...] = (
        ("promote", "aa"), ("refuse", "aa"), ("refuse", "bb"), ("refuse", None), ("rollback", None),
    )  # fmt: skip
    for number, (action, rows) in enumerate(tests):
        note(tmp_path, "rule", Move(action=action, model=f"m{number}", after="v", reason="", rows=rows))
    known = history(tmp_path, "rule")
    assert (known.decided("aa"), known.decided("bb"), known.decided("cc")) == (2, 1, 0)


@pytest.mark.parametrize(
    "torn", [b'{"action": "promote", "mo', b"\xff\xfe", b"[]", b'{"action": "crown"}', b"{" * 9999]
)
def test_a_torn_or_foreign_line_harms_no_other(tmp_path: Path, torn: bytes) -> None:
    """It stays where it is, is named, and the next line does not grow onto it."""
    moved(tmp_path, one(1))
    path = tmp_path / "root_cause" / HISTORY
    path.write_bytes(path.read_bytes() + torn)
    moved(tmp_path, one(2))
    found = history(tmp_path, "root_cause")
    assert [move.after for move in found.moves] == [one(1).version, one(2).version]
    assert found.damaged == (f"{path}:2",)
    assert torn in path.read_bytes()
    assert rollback(tmp_path, "root_cause", MODEL).after == one(1).version


@pytest.mark.parametrize(("step", "noted"), [(0, False), (1, True), (2, True)])
def test_a_promotion_killed_at_any_step_leaves_the_old_program_current(tmp_path: Path, step: int, noted: bool) -> None:
    """Before the artefact, the line, or the change is on the disk; then it can be done again, and undone."""
    moved(tmp_path, one(1))
    candidate = tmp_path / "candidate.json"
    candidate.write_text(dumps(one(2)), encoding="utf-8")
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), str(candidate), one(1).version, str(step)]
    done = subprocess.run(arguments, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert now(tmp_path) == one(1).version
    assert json.loads((tmp_path / "root_cause" / CURRENT).read_text(encoding="utf-8")) == {MODEL: one(1).version}
    assert len(actions(tmp_path)) == 1 + noted
    assert can_go_back(tmp_path, "root_cause") == []
    moved(tmp_path, one(2))
    assert rollback(tmp_path, "root_cause", MODEL).after == one(1).version


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved(tmp_path, one(1))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            moved(tmp_path, one(2))
    assert (now(tmp_path), actions(tmp_path)) == (one(1).version, ["promote"])


def test_a_rollback_that_died_before_the_change_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(tmp_path, one(1))
    moved(tmp_path, one(2))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dspy_reflex.runtime.history.set_current", dies)
        with pytest.raises(KeyboardInterrupt):
            rollback(tmp_path, "root_cause", MODEL)
    assert now(tmp_path) == one(2).version
    assert rollback(tmp_path, "root_cause", MODEL).after == one(1).version == now(tmp_path)


MOVERS, MOVES_EACH = 2, 12


def _promote_many(folder: Path, mover: int, ready: Any) -> None:
    """Promote a program for each of many models that nobody else promotes for."""
    programs = [one(0, f"{MODEL}/{mover}/{number}") for number in range(MOVES_EACH)]
    ready.wait()
    for artifact in programs:
        moved(folder, artifact)


def _promote_one(folder: Path, mover: int, ready: Any, done: Any) -> None:
    """Promote over the same program as the others do."""
    artifact, before = one(mover + 1), now(folder)
    move = Move(action="promote", model=MODEL, before=before, after=artifact.version, reason="it is better")
    ready.wait()
    try:
        promote(folder, artifact, move)
        done.put(artifact.version)
    except ProgramError as error:
        done.put(str(error))


def _at_once(work: Callable[..., None], folder: Path, *more: Any) -> None:
    """Run it in several processes that begin together."""
    spawn = get_context("spawn")
    ready = spawn.Barrier(MOVERS)
    movers = [spawn.Process(target=work, args=(folder, number, ready, *more)) for number in range(MOVERS)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join()
    assert [mover.exitcode for mover in movers] == [0] * MOVERS


def test_processes_that_promote_for_other_models_lose_no_move(tmp_path: Path) -> None:
    _at_once(_promote_many, tmp_path)
    assert len(current(tmp_path, "root_cause")) == MOVERS * MOVES_EACH
    assert len(actions(tmp_path)) == MOVERS * MOVES_EACH


def test_of_two_that_promote_over_the_same_program_one_does(tmp_path: Path) -> None:
    """The other is told to compare again."""
    moved(tmp_path, one(0))
    done = get_context("spawn").Queue()
    _at_once(_promote_one, tmp_path, done)
    said = sorted((done.get() for _ in range(MOVERS)), key=len)
    assert said[0] == now(tmp_path)
    assert "promote again" in said[1]
    assert len(actions(tmp_path)) == 2


def test_who_waits_too_long_for_another_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root_cause").mkdir()
    monkeypatch.setattr("dspy_reflex.runtime.history.WAIT_S", 0.05)
    with FileLock(tmp_path / "root_cause" / LOCK), pytest.raises(ProgramError, match="another process"):
        moved(tmp_path, one(0))
    assert current(tmp_path, "root_cause") == {}


def test_a_way_back_that_is_not_there_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no program to go back to"):
        rollback(tmp_path / "mistyped", "root_cause", MODEL)
    assert list(tmp_path.iterdir()) == []
