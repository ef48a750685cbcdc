"""What both kinds of files promise."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dspy_reflex.recorder.append import AppendFile
from dspy_reflex.recorder.frames import MAX_PAYLOAD_BYTES
from dspy_reflex.recorder.owner import FOLDER, JUST_MADE_S, age_of, is_owned, lock, new_name
from dspy_reflex.recorder.segment import Segment
from dspy_reflex.recorder.spool import Spool
from dspy_reflex.recorder.writer import FullError
from tests.recorder.spooled import payloads

Make = Callable[..., Segment | AppendFile]


@pytest.fixture(params=[Segment, AppendFile])
def make(request: pytest.FixtureRequest) -> Make:
    """Either kind."""
    return request.param


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spool's folder."""
    (tmp_path / FOLDER).mkdir()
    return tmp_path / FOLDER


def test_what_was_written_can_be_read_at_once(make: Make, folder: Path) -> None:
    writer = make(folder, 8192)
    for number in range(3):
        writer.write(b'{"n":%d}' % number)
        assert payloads(folder.parent) == ([b'{"n":%d}' % n for n in range(number + 1)], [])
    writer.close()
    assert payloads(folder.parent)[0] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']


def test_the_lock_lasts_as_long_as_the_file(make: Make, folder: Path) -> None:
    writer = make(folder, 8192)
    writer.write(b"{}")
    assert is_owned(writer.path)
    writer.close()
    assert not is_owned(writer.path)
    writer.close()


def test_a_full_file_says_so_and_keeps_what_it_has(make: Make, folder: Path) -> None:
    writer = make(folder, 8192)
    payload = b'{"text":"' + b"x" * 1000 + b'"}'
    for _ in range(8):
        writer.write(payload)
    with pytest.raises(FullError):
        writer.write(payload)
    assert payloads(folder.parent) == ([payload] * 8, [])
    writer.close()


def test_a_closed_file_takes_nothing(make: Make, folder: Path) -> None:
    writer = make(folder, 8192)
    writer.write(b"{}")
    writer.close()
    with pytest.raises(FullError):
        writer.write(b"{}")


def test_nothing_is_left_of_a_file_that_nothing_was_written_to(make: Make, folder: Path) -> None:
    make(folder, 8192).close()
    assert list(folder.iterdir()) == []


def test_a_file_that_a_reader_removed_can_be_closed(make: Make, folder: Path) -> None:
    writer = make(folder, 8192)
    writer.write(b"{}")
    writer.path.unlink()
    writer.flush()
    writer.close()


def test_nothing_is_left_of_a_file_that_could_not_be_made(tmp_path: Path, make: Make) -> None:
    with pytest.raises(FileNotFoundError):
        make(tmp_path / "nowhere", 8192)
    with pytest.raises((OSError, ValueError)):
        Segment(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


def test_others_may_not_read_it(make: Make, folder: Path) -> None:
    writer = make(folder, 8192)
    assert writer.path.stat().st_mode & 0o777 == 0o600
    writer.close()


def test_a_segment_has_its_space_from_the_start_and_gives_back_what_it_did_not_use(folder: Path) -> None:
    segment = Segment(folder, 1 << 20)
    assert segment.path.stat().st_blocks * 512 >= 1 << 20
    segment.write(b"{}")
    segment.close()
    assert segment.path.stat().st_size < 100


def test_a_segment_takes_the_largest_payload(folder: Path) -> None:
    segment = Segment(folder, 1 << 20)
    segment.write(b"x" * MAX_PAYLOAD_BYTES)
    assert not segment.is_half_full
    segment.write(b"x" * MAX_PAYLOAD_BYTES)
    segment.write(b"{}")
    assert segment.is_half_full
    segment.close()


def test_names_tell_age_and_are_never_used_twice() -> None:
    names = [Path(new_name(".seg")) for _ in range(100)]
    assert len(set(names)) == 100
    assert sorted(names, key=lambda path: age_of(path) or (0, 0)) == names
    assert age_of(Path("notes.seg")) is None


def test_an_empty_file_is_owned_while_it_is_new(tmp_path: Path) -> None:
    """Its maker may be about to lock it."""
    path = tmp_path / new_name(".seg")
    path.touch()
    assert is_owned(path)
    os.utime(path, times=(0, time.time() - JUST_MADE_S - 1))
    assert not is_owned(path)


def test_a_file_is_locked_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    with path.open("rb") as first, path.open("rb") as second:
        lock(first.fileno())
        with pytest.raises(BlockingIOError):
            lock(second.fileno())


def test_readers_that_ask_for_the_lock_do_not_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    assert [is_owned(path), is_owned(path)] == [False, False]
    assert Spool(tmp_path).is_alive(tmp_path / "gone") is False
