"""Several files and a store change as one: all of it or nothing, whatever happens in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.files import Recovered, applier
from dspy_reflex.targets.intent import Change, Intent, dumps, loads
from tests.targets.patching import (
    AFTER,
    BEFORE,
    PATCH,
    act,
    changes,
    files,
    is_applied,
    lay_out,
    left_behind,
    patch,
    recover,
)  # fmt: skip

ROOT = Path(__file__).parents[2]


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that fails."""

    def fail(*_: object) -> None:
        raise error

    return fail


def store_says(applied: bool) -> Callable[[str], bool]:
    """A store that has every patch, or none."""
    return lambda _: applied


def steps_of(folder: Path) -> list[str]:
    """The steps of a patch that nothing disturbs."""
    steps = list[str]()
    patch(lay_out(folder), steps.append)
    return steps


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "workspace")


def test_everything_is_done_and_nothing_is_left_behind(folder: Path) -> None:
    steps = list[str]()
    patch(folder, steps.append)
    assert files(folder) == AFTER
    assert left_behind(folder) == []
    assert steps == [
        "staged intent.json", "put intent.json", "staged SOUL.md", "staged AGENTS.md", "put SOUL.md", "put AGENTS.md",
        "before the store", "behind the store", "committed", "deleted TOOLS.md", "ended",
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_step_and_again_while_recovering_leaves_all_or_nothing(tmp_path: Path) -> None:
    """The next process finishes what the store has and undoes what it has not."""
    arguments = [sys.executable, str(Path(__file__).with_name("patching.py")), str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    deaths = json.loads(done.stdout)
    assert len([one for one in deaths if len(one["deaths"]) == 1]) == len(steps_of(tmp_path / "undisturbed"))
    for one in deaths:
        assert one["files"] == (AFTER if one["applied"] else BEFORE), one
        assert one["left"] == [], one
        assert one["finished"] in (one["applied"], None), one
    again = {(one["deaths"][0], one["applied"]) for one in deaths if len(one["deaths"]) == 2}
    assert {applied for _, applied in again} == {True, False}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("at", range(11))
def test_an_error_at_any_step_leaves_all_or_nothing(folder: Path, at: int, error: BaseException) -> None:
    """Without waiting for the next process, as long as nothing else fails."""
    left = iter([*([None] * at), error])

    def fail(_: str) -> None:
        if (raised := next(left, None)) is not None:
            raise raised

    with pytest.raises(type(error)):
        patch(folder, fail)
    recover(folder)
    assert files(folder) == (AFTER if is_applied(folder) else BEFORE)
    assert left_behind(folder) == []


def test_a_store_that_does_not_commit_undoes_the_files(folder: Path) -> None:
    def commit() -> None:
        assert files(folder) == AFTER | {"TOOLS.md": BEFORE["TOOLS.md"]}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        act(folder, changes(folder), commit, store_says(False))
    assert files(folder) == BEFORE
    assert left_behind(folder) == []


def test_a_store_that_committed_and_lost_the_answer_keeps_the_files(folder: Path) -> None:
    with pytest.raises(ConnectionError):
        act(folder, changes(folder), raising(ConnectionError()), store_says(True))
    assert files(folder) == AFTER


def test_a_store_that_cannot_be_asked_leaves_the_decision_to_the_next(folder: Path) -> None:
    with pytest.raises(ConnectionError):
        act(folder, changes(folder), raising(RuntimeError()), raising(ConnectionError()))
    assert left_behind(folder) == ["intent.json"]
    assert recover(folder) == Recovered(PATCH, False, tuple((folder / "agent").resolve() / name for name in BEFORE))
    assert files(folder) == BEFORE


@pytest.mark.parametrize(
    ("name", "content"), [("SOUL.md", "by hand"), ("AGENTS.md", "by hand"), ("TOOLS.md", "by hand"), ("SOUL.md", None)]
)
def test_a_file_that_changed_since_it_was_read_is_not_touched_nor_any_other(
    folder: Path, name: str, content: str | None
) -> None:
    path = folder / "agent" / name
    path.unlink(missing_ok=True)
    if content:
        path.write_text(content)
    there = files(folder)
    with pytest.raises(TargetError, match=rf"{name} was changed since it was read"):
        patch(folder, lambda _: None)
    assert files(folder) == there
    assert left_behind(folder) == []


def test_a_file_that_changes_while_the_others_are_written_is_found_out(folder: Path) -> None:
    """It stays as somebody left it; the intent stays, too, until that is settled."""

    def meddle(step: str) -> None:
        if step == "put SOUL.md":
            (folder / "agent" / "AGENTS.md").write_text("by hand")

    with pytest.raises(
        TargetError,
        match=r"AGENTS\.md was changed while patch_1 was half done.*; undo the patch by hand, then delete .*intent\.json",
    ):
        patch(folder, meddle)
    with pytest.raises(TargetError, match=r"AGENTS\.md was changed while patch_1 was half done"):
        recover(folder)
    assert files(folder)["AGENTS.md"] == "by hand"
    (folder / "agent" / "AGENTS.md").unlink()
    recovered = recover(folder)
    assert recovered is not None
    assert not recovered.finished
    assert files(folder) == BEFORE


def test_a_file_to_delete_that_changes_while_the_store_commits_stays(folder: Path) -> None:
    tools = folder / "agent" / "TOOLS.md"
    with pytest.raises(TargetError, match=r"TOOLS\.md was changed since it was read"):
        act(folder, changes(folder), lambda: tools.write_text("by hand"), store_says(True))
    assert files(folder) == AFTER | {"TOOLS.md": "by hand"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
@pytest.mark.parametrize("full_from", ["put intent.json", "staged SOUL.md", "put AGENTS.md"])
def test_a_full_disk_leaves_the_files_as_they_were_sooner_or_later(folder: Path, full_from: str) -> None:
    """Undoing takes room only if a file has been replaced; then it waits for the next process."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step: str) -> None:
        if step == full_from:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))

    try:
        with pytest.raises(TargetError, match="cannot be written: File too large"):
            act(folder, changes(folder), raising(RuntimeError()), store_says(False), fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (files(folder) == BEFORE) == (full_from != "put AGENTS.md")
    recover(folder)
    assert files(folder) == BEFORE
    assert left_behind(folder) == []


def test_a_change_that_changes_nothing_is_passed_over(folder: Path) -> None:
    path = folder / "agent" / "SOUL.md"
    there = path.stat()
    act(folder, [Change(path, b"x", b"x")], lambda: None, store_says(True))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (there.st_ino, there.st_mtime_ns)


def test_one_file_under_two_names_is_changed_once(folder: Path) -> None:
    (folder / "agent" / "CLAUDE.md").symlink_to("SOUL.md")
    both = [Change(folder / "agent" / name, b"- soul\n", b"x") for name in ("SOUL.md", "CLAUDE.md")]
    with pytest.raises(ValueError, match="two changes of one file"):
        act(folder, both, lambda: None, store_says(True))


def test_a_new_file_needs_its_folder(folder: Path) -> None:
    with pytest.raises(TargetError, match="no such folder"):
        act(folder, [Change(folder / "nowhere" / "SOUL.md", None, b"x")], lambda: None, store_says(True))


def test_only_one_process_at_a_time(folder: Path) -> None:
    (folder / "home" / "patches").mkdir(parents=True)
    with (
        FileLock(folder / "home" / "patches" / "lock"),
        pytest.raises(TargetError, match="another process is applying patches"),
    ):
        act(folder, [], lambda: None, store_says(True), wait_s=0.01)
    act(folder, [], lambda: None, store_says(True))


def test_threads_wait_for_each_other(folder: Path) -> None:
    """Each adds one line to what it read under the lock; none is lost."""
    path = folder / "agent" / "SOUL.md"

    def work() -> None:
        with applier(folder / "home", store_says(True)) as (one, _):
            before = path.read_bytes()
            with one.written(PATCH, [Change(path, before, before + b"+\n")]):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "- soul\n" + "+\n" * 4


def test_a_home_that_cannot_be_made_is_named(folder: Path) -> None:
    (folder / "home").touch()
    with pytest.raises(TargetError, match=r"patches: cannot be written: "):
        act(folder, [], lambda: None, store_says(True))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[1]",
        b"{}",
        b'{"patch_id": "p", "files": [{"path": "x"}]}',
        b"\xff",
        b'{"patch_id": "p", "files": [{"path": "x", "before": "?", "after": null}]}',
    ],
)
def test_a_damaged_intent_is_said_and_kept(folder: Path, content: bytes) -> None:
    (folder / "home" / "patches").mkdir(parents=True)
    (folder / "home" / "patches" / "intent.json").write_bytes(content)
    with pytest.raises(TargetError, match=r"intent\.json is damaged"):
        recover(folder)
    assert files(folder) == BEFORE
    assert left_behind(folder) == ["intent.json"]


def test_an_intent_comes_back_whatever_the_bytes_and_names_are() -> None:
    intent = Intent(PATCH, (Change(Path("/a/\udcff.md"), None, bytes(range(256))), Change(Path("b"), b"", None)))
    assert loads(dumps(intent), "intent.json") == intent
