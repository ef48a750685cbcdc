"""There is always a file to write to, of one kind or the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dspy_reflex.recorder.frames import SUFFIX
from dspy_reflex.recorder.outlet import Outlet
from dspy_reflex.recorder.owner import FOLDER, is_owned
from dspy_reflex.recorder.spool import Spool
from dspy_reflex.recorder.writer import FullError
from tests.recorder.spooled import payloads, run

SIZE = 8192
PAYLOAD = b'{"text":"' + b"x" * 480 + b'"}'


def until(holds: Callable[[], bool]) -> None:
    """Wait for a helper."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_files_follow_each_other_and_nothing_is_lost_between_them(tmp_path: Path) -> None:
    outlet = Outlet(tmp_path / FOLDER, SIZE)
    written = [b'{"n":%d,"text":"%b"}' % (n, b"x" * (n % 700)) for n in range(300)]
    for payload in written:
        outlet.write(payload)
    assert payloads(tmp_path) == (written, [])
    assert len(Spool(tmp_path).pending()) > 5
    outlet.close()
    assert payloads(tmp_path) == (written, [])


def test_the_next_file_is_there_before_it_is_needed(tmp_path: Path) -> None:
    outlet = Outlet(tmp_path / FOLDER, SIZE)
    for _ in range(SIZE // 2 // 500):
        outlet.write(PAYLOAD)
    assert len(Spool(tmp_path).pending()) == 1
    outlet.write(PAYLOAD)
    until(lambda: len(Spool(tmp_path).pending()) == 2)
    first, second = Spool(tmp_path).pending()
    assert second.stat().st_size == SIZE
    assert is_owned(first)
    assert is_owned(second)
    outlet.close()
    assert Spool(tmp_path).pending() == [first]


def test_a_file_that_is_full_goes_to_its_readers(tmp_path: Path) -> None:
    outlet = Outlet(tmp_path / FOLDER, SIZE)
    for _ in range(20):
        outlet.write(PAYLOAD)
    first = Spool(tmp_path).pending()[0]
    until(lambda: not is_owned(first))
    assert Spool(tmp_path).remove(first, first.stat().st_size)
    outlet.close()


def test_threads_write_at_once(tmp_path: Path) -> None:
    outlet = Outlet(tmp_path / FOLDER, 1 << 16)

    def write(thread: int) -> None:
        for number in range(500):
            outlet.write(b'{"thread":%d,"number":%d}' % (thread, number))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found, bad = payloads(tmp_path)
    assert bad == []
    assert sorted(found) == sorted(b'{"thread":%d,"number":%d}' % (t, n) for t in range(8) for n in range(500))
    outlet.close()


def test_a_payload_larger_than_a_file_is_refused_and_the_next_one_is_not(tmp_path: Path) -> None:
    outlet = Outlet(tmp_path / FOLDER, SIZE)
    with pytest.raises(FullError):
        outlet.write(b"x" * SIZE)
    outlet.write(b"{}")
    assert payloads(tmp_path) == ([b"{}"], [])
    outlet.close()


def test_after_closing_it_goes_on_in_a_new_file(tmp_path: Path) -> None:
    outlet = Outlet(tmp_path / FOLDER, SIZE)
    outlet.write(b'{"n":1}')
    outlet.close()
    outlet.write(b'{"n":2}')
    outlet.flush()
    assert payloads(tmp_path) == ([b'{"n":1}', b'{"n":2}'], [])
    outlet.close()
    outlet.flush()
    assert len(Spool(tmp_path).pending()) == 2


class Impatient(Outlet):
    """Tries again at once."""

    retry_s = 0.0


def test_a_place_that_comes_back_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"in the way")
    outlet, patient = Impatient(tmp_path / "home" / FOLDER, SIZE), Outlet(tmp_path / "home" / FOLDER, SIZE)
    assert [outlet.kind, patient.kind] == ["none", "none"]
    assert "home" in outlet.fallback
    with pytest.raises(OSError, match="home"):
        outlet.write(b"{}")
    (tmp_path / "home").unlink()
    outlet.write(b"{}")
    assert [outlet.kind, patient.kind] == ["mapped", "none"]
    assert outlet.fallback == ""
    with pytest.raises(OSError, match="home"):
        patient.write(b"{}")
    assert payloads(tmp_path / "home") == ([b"{}"], [])
    outlet.close()


NO_SEGMENTS = """
import os, sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
def refuse(*_): raise OSError(95, "Operation not supported")
os.posix_fallocate = refuse
outlet = Outlet(Path(sys.argv[1]), 8192)
for n in range(100):
    outlet.write(b'{"n":%d,"text":"%b"}' % (n, b"x" * 400))
print(outlet.kind, outlet.fallback)
"""


def test_where_nothing_can_be_allocated_lines_are_appended(tmp_path: Path) -> None:
    assert run(NO_SEGMENTS, tmp_path / FOLDER).stdout == "append [Errno 95] Operation not supported\n"
    found, bad = payloads(tmp_path)
    assert (len(found), bad) == (100, [])
    assert {path.suffix for path in (tmp_path / FOLDER).iterdir()} == {".jsonl"}


FULL_DISK = """
import resource, sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
outlet = Outlet(Path(sys.argv[1]))
written = 0
for n in range(200):
    try:
        outlet.write(b'{"n":%d,"text":"%b"}' % (n, b"x" * 400))
        written += 1
    except OSError:
        pass
print(outlet.kind, written)
"""


def test_what_a_full_disk_takes_is_kept_and_what_it_does_not_is_told(tmp_path: Path) -> None:
    """A limit of the process stands in for the disk: the kernel cuts a write short in the same way."""
    kind, written = run(FULL_DISK, tmp_path / FOLDER).stdout.split()
    found, bad = payloads(tmp_path)
    assert kind == "append"
    assert len(found) == int(written) > 60
    assert [one.reason for one in bad] == ["torn or damaged"]


WANDER = """
import os, sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
os.chdir(sys.argv[1])
outlet = Outlet(Path("spool"), 8192)
os.mkdir("elsewhere")
os.chdir("elsewhere")
for n in range(100):
    outlet.write(b'{"n":%d,"text":"%b"}' % (n, b"x" * 400))
"""


def test_files_stay_where_they_are_when_the_agent_goes_elsewhere(tmp_path: Path) -> None:
    run(WANDER, tmp_path)
    assert len(payloads(tmp_path)[0]) == 100


FORK = """
import os, sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
outlet = Outlet(Path(sys.argv[1]), 8192)
for n in range(50):
    outlet.write(b'{"who":"parent","n":%d,"text":"%b"}' % (n, b"x" * 100))
    if n % 10 == 0 and os.fork() == 0:
        for m in range(50):
            outlet.write(b'{"who":"child of %d","n":%d,"text":"%b"}' % (n, m, b"y" * 100))
        os._exit(0)
for _ in range(5):
    assert os.wait()[1] == 0
"""


def test_a_child_writes_to_a_file_of_its_own(tmp_path: Path) -> None:
    run(FORK, tmp_path / FOLDER)
    found, bad = payloads(tmp_path)
    assert bad == []
    assert len(found) == len(set(found)) == 6 * 50


ORPHAN = """
import os, sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
def refuse(*_): raise OSError(95, "Operation not supported")
if sys.argv[2] == "append":
    os.posix_fallocate = refuse
outlet = Outlet(Path(sys.argv[1]), 8192)
outlet.write(b'{}')
told, tell = os.pipe()
if os.fork() == 0:
    os.close(tell)
    os.read(told, 1)  # until the test is done
    os._exit(0)
os.close(told)
outlet.close()
from dspy_reflex.recorder.spool import Spool
print([Spool(Path(sys.argv[1]).parent).is_alive(path) for path in Spool(Path(sys.argv[1]).parent).pending()])
os.close(tell)
os.wait()
"""


@pytest.mark.parametrize("kind", ["mapped", "append"])
def test_a_child_does_not_keep_its_parents_files_alive(tmp_path: Path, kind: str) -> None:
    assert run(ORPHAN, tmp_path / FOLDER, kind).stdout == "[False]\n"


SIGNAL = """
import itertools, signal, sys
from pathlib import Path
from dspy_reflex.recorder.outlet import Outlet
outlet = Outlet(Path(sys.argv[1]), 65536)
numbers, handled = itertools.count(), itertools.count()  # a handler may be interrupted by itself
def handle(*_):
    outlet.write(b'{"who":"handler","n":%d}' % next(numbers))
    next(handled)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for n in range(10_000):
    outlet.write(b'{"who":"loop","n":%d}' % n)
signal.setitimer(signal.ITIMER_REAL, 0)
print(n + 1 + next(handled))
"""


def test_a_signal_handler_may_write_in_the_middle_of_a_write(tmp_path: Path) -> None:
    written = int(run(SIGNAL, tmp_path / FOLDER).stdout)
    found, bad = payloads(tmp_path)
    assert bad == []
    assert len(found) == len(set(found)) == written


LATE = """
import atexit, sys
from pathlib import Path
class Last:
    def __del__(self):
        outlet.write(b'{"n":3}')
def late():
    outlet.write(b'{"n":2}')
atexit.register(late)  # runs after the outlet has closed its files
from dspy_reflex.recorder.outlet import Outlet
outlet = Outlet(Path(sys.argv[1]))
outlet.write(b'{"n":1}')
sys.last = Last()
"""


def test_the_end_of_the_interpreter_is_early_enough(tmp_path: Path) -> None:
    run(LATE, tmp_path / FOLDER)
    assert payloads(tmp_path)[0][:2] == [b'{"n":1}', b'{"n":2}']
    assert {path.suffix for path in (tmp_path / FOLDER).iterdir()} == {SUFFIX}
