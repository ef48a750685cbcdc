"""A file is either the old one or the new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.files import write_atomic

ROOT = Path(__file__).parents[1]
STEPS = ("os.fsync", "os.fdopen", "pathlib.Path.chmod", "pathlib.Path.replace")

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from dspy_reflex.files import write_atomic
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_atomic(Path(sys.argv[2]), b"new")
"""


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that fails."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


@given(content=st.binary(max_size=200))
def test_what_is_written_is_there(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("files") / "new" / "folders" / "file.json"
    write_atomic(path, content)
    assert path.read_bytes() == content
    write_atomic(path, content[::-1])
    assert path.read_bytes() == content[::-1]
    assert os.listdir(path.parent) == ["file.json"]  # noqa: PTH208 - names, not paths


def test_a_large_file_is_written_whole(tmp_path: Path) -> None:
    write_atomic(tmp_path / "f", b"0123456789" * 500_000)
    assert (tmp_path / "f").stat().st_size == 5_000_000


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(step, raising(error))
        with pytest.raises(type(error)):
            write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_a_full_disk_leaves_no_new_file_where_there_was_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", raising(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_atomic(tmp_path / "file.json", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_kill_before_the_end_leaves_the_old_file(tmp_path: Path) -> None:
    """A hidden rest may lie about; it is not the file, and the next write works."""
    path = tmp_path / "file.json"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(ROOT), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert all(entry.name.startswith(".file.json.") for entry in tmp_path.iterdir() if entry != path)
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_the_bytes_are_on_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut could leave an empty file under the right name."""
    path = tmp_path / "file.json"
    path.write_bytes(b"old")
    seen: list[tuple[bytes, bytes]] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        fsync(handle)
        written = next(entry for entry in tmp_path.iterdir() if entry != path)
        seen.append((path.read_bytes(), written.read_bytes()))

    monkeypatch.setattr("os.fsync", watched)
    write_atomic(path, b"new")
    assert seen[0] == (b"old", b"new")


def test_others_may_read_what_was_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file.json", b"x")
    assert (tmp_path / "file.json").stat().st_mode & 0o777 == 0o644


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file.json" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="irectory"):
        write_atomic(tmp_path / "file.json", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match=r"ile exists|ot a directory"):
        write_atomic(tmp_path / "file" / "x.json", b"x")
    assert (tmp_path / "file").read_bytes() == b"old"
