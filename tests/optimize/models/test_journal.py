"""Answers that were paid for: kept through kills, shared by threads and processes, never trusted when damaged."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import JournalError
from dspy_reflex.optimize.models.journal import FILE, Journal, key_of
from dspy_reflex.runtime.lm.model import Completion
from tests.optimize.compiles import ROOT

TEXTS = st.text(st.characters())
"""Lone surrogates among them: a server's JSON may hold any."""
COMPLETIONS = st.builds(
    Completion, TEXTS, st.sampled_from(["stop", "length", "refusal"]), *[st.integers(0, 2**53)] * 4, st.booleans()
)
WRITES_FOR_EVER = """
import itertools, sys
from pathlib import Path
from dspy_reflex.optimize.models.journal import Journal, key_of
from dspy_reflex.runtime.lm.model import Completion
journal = Journal(Path(sys.argv[1]))
for number in itertools.count():
    journal.note(key_of({"n": number}), Completion(f"answer {number} " * 50))
    print(number, flush=True)
"""
WRITES_WITH_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from dspy_reflex.optimize.models.journal import Journal, key_of
from dspy_reflex.runtime.lm.model import Completion
journal = Journal(Path(sys.argv[1]))
def one(number):
    key = key_of({"n": number})
    found = journal.find(key)
    assert found in (None, Completion(f"answer {number}"))
    journal.note(key, Completion(f"answer {number}"))
    assert journal.find(key) == Completion(f"answer {number}")
with ThreadPoolExecutor(8) as pool:
    list(pool.map(one, range(*map(int, sys.argv[2:]))))
"""
UNDER_A_LIMIT = """
import resource, signal, sys
from pathlib import Path
from dspy_reflex.errors import JournalError
from dspy_reflex.optimize.models.journal import Journal, key_of
from dspy_reflex.runtime.lm.model import Completion
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
journal, number = Journal(Path(sys.argv[1])), 0
try:
    for number in range(1_000):
        journal.note(key_of({"n": number}), Completion("x" * 2_000))
except JournalError as error:
    print(number, error)
"""

CLOSED_WHILE_ASKED = """
import sys, threading
from pathlib import Path
from dspy_reflex.errors import JournalError
from dspy_reflex.optimize.models.journal import Journal, key_of
from dspy_reflex.runtime.lm.model import Completion
KEYS = [key_of({"n": number}) for number in range(200)]
def ask(journal, told):
    try:
        while True:
            for key in KEYS:
                journal.find(key)
    except JournalError:
        told.append("closed")
for turn in range(int(sys.argv[2])):
    journal, told = Journal(Path(sys.argv[1])), []
    for key in KEYS:
        journal.note(key, Completion("x" * 500))
    threads = [threading.Thread(target=ask, args=(journal, told)) for _ in range(4)]
    for thread in threads:
        thread.start()
    journal.close()
    for thread in threads:
        thread.join()
    assert told == ["closed"] * 4, told
"""


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or not umount:
        pytest.skip("no mount here")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this user may mount nothing")
    yield disk
    subprocess.run([umount, disk], check=True)


@given(st.dictionaries(TEXTS, COMPLETIONS, max_size=5))
def test_what_is_noted_is_found(answers: dict[str, Completion]) -> None:
    """Whatever a model may say; a key that was not noted is not found."""
    with closing(Journal()) as journal:
        keys = {name: key_of({"asked": name}) for name in answers}
        for name, answer in answers.items():
            journal.note(keys[name], answer)
        assert {name: journal.find(key) for name, key in keys.items()} == answers
        assert journal.find(key_of({"asked else": ""})) is None


def test_a_file_keeps_odd_texts(tmp_path: Path) -> None:
    """And the last answer of a key is the one that counts."""
    answer = Completion("\ud800\x00\u2028🐍", "length", 3, 4, 1, 2, True)
    for text in (Completion("before"), answer):
        with closing(Journal(tmp_path / "new" / FILE)) as journal:
            journal.note("key", text)
    with closing(Journal(tmp_path / "new" / FILE)) as journal:
        assert journal.find("key") == answer


@given(st.dictionaries(TEXTS, TEXTS, max_size=4), st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_a_key_is_what_was_asked(one: dict[str, str], other: dict[str, str]) -> None:
    """Whatever the order of its parts; other parts have another key."""
    assert key_of(dict(reversed(one.items()))) == key_of(one)
    assert (key_of(one) == key_of(other)) == (one == other)


def test_a_killed_writer_loses_nothing_that_was_noted(tmp_path: Path) -> None:
    """Killed as soon as it has told of 5, 40 and 200 answers; each time the next one goes on in the same file."""
    path, told = tmp_path / FILE, 0
    for number in (5, 40, 200):
        writer = python(WRITES_FOR_EVER, path)
        assert writer.stdout
        told = [int(writer.stdout.readline()) for _ in range(number)][-1]
        writer.kill()
        told = max([told, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        assert writer.wait() == -9
        writer.stdout.close()
        with closing(Journal(path)) as journal:
            found = [journal.find(key_of({"n": each})) for each in range(told + 1)]
        assert found == [Completion(f"answer {each} " * 50) for each in range(told + 1)]
    assert told >= 199


def test_two_processes_of_eight_threads_write_and_read_at_once(tmp_path: Path) -> None:
    """The same keys among them; from the moment when neither has made the file."""
    with closing(Journal(tmp_path / FILE)) as journal:
        writers = [python(WRITES_WITH_THREADS, tmp_path / FILE, *part) for part in ((0, 300), (200, 500))]
        assert [writer.communicate()[0] for writer in writers] == ["", ""]
        assert [writer.returncode for writer in writers] == [0, 0]
        assert [journal.find(key_of({"n": number})) for number in range(500)] == [
            Completion(f"answer {number}") for number in range(500)
        ]


def test_a_journal_may_be_closed_while_threads_ask(tmp_path: Path) -> None:
    """As when a search is interrupted. SQLite itself dies of it, so in a process of its own, some times over."""
    done = python(CLOSED_WHILE_ASKED, tmp_path / FILE, 10)
    done.communicate()
    assert done.returncode == 0


def test_one_who_waits_for_a_turn_finds_the_answer() -> None:
    """Of many threads that want the same, one asks."""
    asked: list[str] = []
    with closing(Journal()) as journal:

        def want(key: str) -> Completion | None:
            with journal.turn(key):
                if journal.find(key) is None:
                    asked.append(key)
                    journal.note(key, Completion(key))
                return journal.find(key)

        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(want, [f"key-{number % 7}" for number in range(700)]))
    assert found == [Completion(f"key-{number % 7}") for number in range(700)]
    assert sorted(asked) == [f"key-{number}" for number in range(7)]


def by_bytes(old: bytes, new: bytes) -> Callable[[Path], None]:
    """Change bytes of a file behind SQLite's back."""

    def change(path: Path) -> None:
        content = path.read_bytes()
        assert content.count(old) == 1
        path.write_bytes(content.replace(old, new))

    return change


def by_sql(statement: str) -> Callable[[Path], None]:
    """Change a record in SQLite."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as file:
            file.execute(f"{statement} WHERE key = 'one'")
            file.commit()

    return change


@pytest.mark.parametrize(
    "change",
    [
        by_bytes(b"the first", b"the worst"),
        by_bytes(b"the first", b"\xffhe first"),
        by_bytes(b'first", "stop"', b'first", "stop,'),
        by_sql("UPDATE answers SET checksum = '0123456789abcdef'"),
        by_sql("UPDATE answers SET checksum = x'00ff'"),
        by_sql("UPDATE answers SET answer = x'00ff'"),
        by_sql("UPDATE answers SET answer = '[]'"),
        by_sql("UPDATE answers SET answer = (SELECT answer FROM answers WHERE key = 'two')"),
        by_sql("DELETE FROM answers"),
    ],
    ids=["another letter", "no UTF-8", "no JSON", "checksum", "bytes", "blob", "empty", "another's", "gone"],
)
def test_a_record_that_was_changed_is_as_good_as_missing(change: Callable[[Path], None], tmp_path: Path) -> None:
    """It is asked again and kept again; its neighbours are whole."""
    path, answers = tmp_path / FILE, {"one": Completion("the first"), "two": Completion("the second")}
    with closing(Journal(path)) as journal:
        for key, answer in answers.items():
            journal.note(key, answer)
    change(path)
    with closing(Journal(path)) as journal:
        assert (journal.find("one"), journal.find("two")) == (None, answers["two"])
        journal.note("one", answers["one"])
        assert journal.find("one") == answers["one"]


@pytest.mark.parametrize(
    "content", [b"my diary, no database at all" * 100, bytes(5_000), b"SQLite format 3\0" + b"?" * 5_000]
)
def test_a_file_that_is_no_journal_is_one_sentence_and_left_alone(content: bytes, tmp_path: Path) -> None:
    """With its name and what to do."""
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"journal cannot be used .*--run") as caught:
        Journal(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert path.read_bytes() == content


def test_a_journal_whose_pages_are_overwritten_is_one_sentence(tmp_path: Path) -> None:
    """Not a record, the file's own structure."""
    path = tmp_path / FILE
    with closing(Journal(path)) as journal:
        for number in range(200):
            journal.note(key_of({"n": number}), Completion("x" * 500))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xaa" * (len(content) - 4096))
    with pytest.raises(JournalError, match="the journal cannot be used") as caught, closing(Journal(path)) as journal:
        journal.find(key_of({"n": 3}))
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """A file stands in its place."""
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    with pytest.raises(JournalError, match="taken"):
        Journal(tmp_path / "taken" / FILE)


def test_a_full_disk_is_one_sentence_and_loses_nothing(tiny_disk: Path) -> None:
    """What was noted before is found, and once there is room it goes on."""
    path, noted = tiny_disk / FILE, 0
    with closing(Journal(path)) as journal:

        def fill() -> None:
            nonlocal noted
            for noted in range(1_000):
                journal.note(key_of({"n": noted}), Completion("x" * 2_000))

        with pytest.raises(JournalError, match=r"full.*free some space") as caught:
            fill()
    assert len(str(caught.value).splitlines()) == 1
    assert noted > 10
    mount = shutil.which("mount")
    assert mount
    subprocess.run([mount, "-o", "remount,size=5m", tiny_disk], check=True)
    with closing(Journal(path)) as journal:
        assert all(journal.find(key_of({"n": number})) for number in range(noted))
        journal.note(key_of({"n": noted}), Completion("at last"))
        assert journal.find(key_of({"n": noted})) == Completion("at last")


def test_a_file_that_may_not_grow_is_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    """A quota, for example; in a process of its own."""
    pytest.importorskip("resource")
    done = python(UNDER_A_LIMIT, tmp_path / FILE)
    told, _ = done.communicate()
    assert done.returncode == 0
    assert len(told.splitlines()) == 1
    assert "the journal cannot be used" in told
    noted = int(told.split()[0])
    assert noted > 10
    with closing(Journal(tmp_path / FILE)) as journal:
        assert all(journal.find(key_of({"n": number})) for number in range(noted))
