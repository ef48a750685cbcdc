"""A spool gives back what is whole, reports what is not, and lets nothing go too early."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.recorder import frames, lines
from dspy_reflex.recorder.owner import FOLDER, lock, new_name
from dspy_reflex.recorder.segment import Segment
from dspy_reflex.recorder.spool import PAGE_BYTES, Bad, Page, Spool
from tests.recorder.spooled import ROOT, payloads

EVENTS = [b'{"n":1}', b'{"n":2}', b'{"n":3}']


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """An empty one."""
    (tmp_path / FOLDER).mkdir()
    return Spool(tmp_path)


def left(spool: Spool, content: bytes, suffix: str = frames.SUFFIX) -> Path:
    """A file of a process that is gone."""
    path = spool.folder / new_name(suffix)
    path.write_bytes(content)
    return path


@contextmanager
def owned(path: Path) -> Generator[None]:
    """As long as its owner is alive."""
    with path.open("rb") as file:
        lock(file.fileno())
        yield


def test_without_a_spool_nothing_is_pending(tmp_path: Path) -> None:
    assert Spool(tmp_path).pending() == Spool(tmp_path).strays() == []
    assert list(tmp_path.iterdir()) == []


def test_files_come_in_the_order_they_were_begun(spool: Spool) -> None:
    names = ["b-9-100-0.seg", "a-1-99-7.jsonl", "a-1-1000-3.seg", "c-d-2-100-1.seg"]
    for name in names:
        (spool.folder / name).write_bytes(b"")
    assert [path.name for path in spool.pending()] == [names[1], names[0], names[3], names[2]]


def test_what_is_not_of_the_spool_is_left_alone(spool: Spool) -> None:
    for name in ("notes.txt", "failures.jsonl", ".ingest.lock"):
        (spool.folder / name).write_bytes(b"")
    (spool.folder / "a-1-2-3.seg").mkdir()
    assert spool.pending() == []
    assert [path.name for path in spool.strays()] == ["failures.jsonl", "notes.txt"]


@pytest.mark.parametrize(("suffix", "pack"), [(frames.SUFFIX, frames.pack), (lines.SUFFIX, lines.pack)])
def test_pages_follow_each_other(spool: Spool, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = left(spool, b"".join(map(pack, EVENTS)), suffix)
    first = spool.read(path, 0, 2)
    assert [payload for payload, _ in first.events] == EVENTS[:2]
    assert not first.at_end
    assert first.next_offset == first.events[-1][1]
    rest = spool.read(path, first.next_offset, 2)
    assert [payload for payload, _ in rest.events] == EVENTS[2:]
    assert rest.at_end
    assert spool.read(path, first.events[0][1], 1).events == [first.events[1]]
    assert spool.read(path, rest.next_offset, 2) == Page(next_offset=rest.next_offset, at_end=True)


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 5), st.sampled_from([frames, lines]))
def test_every_page_size_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[int], limit: int, form: ModuleType
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / FOLDER).mkdir()
    choice = (b'{"n":0}', b"null", b"[1]", b'{"text":"long"}')
    left(Spool(home), b"".join(form.pack(choice[kind]) for kind in kinds), form.SUFFIX)
    events, bad = payloads(home, limit)
    assert events == [choice[kind] for kind in kinds if kind in (0, 3)]
    assert [one.excerpt for one in bad] == [choice[kind] for kind in kinds if kind in (1, 2)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"null", "not an object"),
        (b"[1]", "not an object"),
        (b'"text"', "not an object"),
        (b'{"a":"\xff"}', "not JSON"),
        (b'{"a":NaN}', "not JSON"),
        (b'\0\0{"a":1}', "not JSON"),
        (b'{"a":1', "not JSON"),
        (b'{"a":"\\ud800"}', "not JSON"),
        (b"x" * 3_000_000, "not JSON"),
    ],
)
def test_a_foreign_line_is_reported_and_its_neighbours_are_read(spool: Spool, line: bytes, reason: str) -> None:
    path = left(spool, EVENTS[0] + b"\n" + line + b"\n" + EVENTS[1] + b"\n", lines.SUFFIX)
    events, bad = payloads(spool.folder.parent)
    assert events == EVENTS[:2]
    assert [(one.offset, one.excerpt) for one in bad] == [(8, line[:200])]
    assert bad[0].reason.startswith(reason)
    assert spool.remove(path, path.stat().st_size)


@pytest.mark.parametrize("suffix", [frames.SUFFIX, lines.SUFFIX])
@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n" + b"\0\xff" * 90_000, b"\xffevt" * 5000, b"MZ", b"{" * 3_000_000]
)
def test_a_foreign_file_is_reported_and_ends(spool: Spool, suffix: str, content: bytes) -> None:
    path = left(spool, content, suffix)
    events, bad = payloads(spool.folder.parent)
    assert events == []
    assert 1 <= len(bad) <= 3
    assert spool.remove(path, path.stat().st_size)


def test_a_damaged_middle_is_reported_and_the_rest_is_read(spool: Spool) -> None:
    content = bytearray(b"".join(map(frames.pack, EVENTS)))
    content[len(frames.pack(EVENTS[0])) + 14] ^= 1
    left(spool, bytes(content) + bytes(1000))
    events, bad = payloads(spool.folder.parent)
    assert events == [EVENTS[0], EVENTS[2]]
    assert bad == [Bad(19, "torn or damaged", bytes(content[19:38]))]


def test_pages_that_a_power_cut_left_empty_cost_no_event_behind_them(spool: Spool) -> None:
    content = frames.pack(EVENTS[0]) + bytes(3 * PAGE_BYTES) + frames.pack(EVENTS[1]) + bytes(3 * PAGE_BYTES)
    left(spool, content)
    events, bad = payloads(spool.folder.parent)
    assert events == EVENTS[:2]
    assert [one.offset for one in bad] == [19]


def test_events_at_the_border_of_what_is_read_at_a_time(spool: Spool) -> None:
    many = [b'{"n":%d,"text":"%b"}' % (n, b"x" * (n * 997 % 9000)) for n in range(700)]
    left(spool, b"".join(map(frames.pack, many)))
    left(spool, b"".join(map(lines.pack, many)), lines.SUFFIX)
    assert payloads(spool.folder.parent) == (many + many, [])


@pytest.mark.parametrize(("suffix", "pack"), [(frames.SUFFIX, frames.pack), (lines.SUFFIX, lines.pack)])
def test_a_half_written_end_is_left_while_the_owner_is_alive(
    spool: Spool, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    path = left(spool, pack(EVENTS[0]) + pack(EVENTS[1])[:-3], suffix)
    with owned(path):
        page = spool.read(path, 0, 10)
        assert [payload for payload, _ in page.events] == EVENTS[:1]
        assert (page.bad, page.at_end) == ([], True)
        assert spool.is_alive(path)
        assert not spool.remove(path, page.next_offset)
        path.write_bytes(pack(EVENTS[0]) + pack(EVENTS[1]))
        assert [payload for payload, _ in spool.read(path, page.next_offset, 10).events] == EVENTS[1:2]


def test_a_half_written_end_is_reported_once_the_owner_is_dead(spool: Spool) -> None:
    path = left(spool, frames.pack(EVENTS[0]) + frames.pack(EVENTS[1])[:-3] + bytes(500))
    page = spool.read(path, 0, 10)
    assert [one.reason for one in page.bad] == ["torn or damaged"]
    assert not spool.remove(path, 0)
    assert not spool.remove(path, page.events[0][1])
    assert spool.remove(path, page.next_offset)
    assert not path.exists()


def test_a_last_line_that_lacks_only_its_end_is_an_event(spool: Spool) -> None:
    left(spool, EVENTS[0], lines.SUFFIX)
    assert payloads(spool.folder.parent) == (EVENTS[:1], [])


def test_a_damaged_middle_is_reported_while_the_owner_is_alive_too(spool: Spool) -> None:
    content = frames.pack(EVENTS[0]) + b"damage" + frames.pack(EVENTS[1]) + frames.pack(EVENTS[2])[:10]
    path = left(spool, content + bytes(100))
    with owned(path):
        page = spool.read(path, 0, 10)
        assert [payload for payload, _ in page.events] == EVENTS[:2]
        assert [one.excerpt for one in page.bad] == [b"damage"]
        assert page.next_offset == page.events[-1][1]


def test_a_file_with_more_in_it_is_not_removed(spool: Spool) -> None:
    path = left(spool, b"".join(map(frames.pack, EVENTS)))
    for offset in (0, 19, 38):
        assert not spool.remove(path, offset)
    assert spool.remove(path, 57)


def test_a_file_whose_owner_is_alive_is_not_removed(spool: Spool) -> None:
    segment = Segment(spool.folder, 8192)
    segment.write(EVENTS[0])
    assert not spool.remove(segment.path, 19)
    segment.close()
    assert spool.remove(segment.path, 19)


def test_a_file_that_is_gone_has_no_more_to_say(spool: Spool) -> None:
    path = spool.folder / new_name(frames.SUFFIX)
    assert spool.read(path, 7, 10) == Page(next_offset=7, at_end=True)
    assert spool.remove(path, 7)


def test_a_file_that_cannot_be_read_is_reported(spool: Spool) -> None:
    path = spool.folder / new_name(frames.SUFFIX)
    path.mkdir()
    page = spool.read(path, 0, 10)
    assert page.bad[0].reason.startswith("cannot be read: ")
    assert (page.next_offset, page.at_end) == (0, True)
    assert not spool.remove(path, 0)


class Moving(type(Path())):
    """A file that has a further content whenever it is opened: for the lock, then for each look."""

    contents: ClassVar[list[bytes]] = []

    def open(self, *_: Any, **__: Any) -> Any:
        return BytesIO(self.contents.pop(0))


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        # The second frame was written after the copy had passed it, and before it came to the third.
        (["1 3", "123"], (["1", "2", "3"], 0)),
        (["1 3", "1 3"], (["1", "3"], 1)),
        (["1 3 ", "12 4"], (["1", "2"], 0)),
        (["  3", "1 3"], (["1"], 0)),
        (["12"], (["1", "2"], 0)),
    ],
)
def test_a_frame_that_the_copy_missed_is_no_damage(
    spool: Spool, looks: list[str], expected: tuple[list[str], int]
) -> None:
    empty = bytes(len(frames.pack(b'{"n":1}')))
    contents = [b"".join(empty if n == " " else frames.pack(b'{"n":%b}' % n.encode()) for n in look) for look in looks]
    Moving.contents = [b"", *contents]
    path = Moving(spool.folder / new_name(frames.SUFFIX))
    Path(path).write_bytes(b"x")
    page = spool.read(path, 0, 10)
    assert ([str(orjson.loads(payload)["n"]) for payload, _ in page.events], len(page.bad)) == expected


WRITER = """
import sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
outlet = Outlet(Path(sys.argv[1]), 1 << 18)
for n in range(int(sys.argv[2])):
    outlet.write(b'{"n":%d,"text":"%b"}' % (n, b"x" * (n * 31 % 900)))
"""


@pytest.mark.parametrize(("limit", "number"), [(7, 3000), (1000, 30_000)])
def test_a_reader_beside_the_writer_sees_each_event_once_and_no_damage(spool: Spool, limit: int, number: int) -> None:
    seen, offsets = list[bytes](), dict[Path, int]()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(spool.folder), str(number)], cwd=ROOT)
    running = True
    while running or spool.pending():
        running = writer.poll() is None
        for path in spool.pending():
            page = spool.read(path, offsets.get(path, 0), limit)
            assert page.bad == []
            seen += [payload for payload, _ in page.events]
            offsets[path] = page.next_offset
            if page.at_end:
                spool.remove(path, page.next_offset)
    assert writer.returncode == 0
    assert sorted(orjson.loads(payload)["n"] for payload in seen) == list(range(number))
