"""Every answer that a compile paid for, in one SQLite file: cache and way back in one.

A compile is a pure function of its rows, its options and its models' answers. So one that was killed goes on by doing
everything again, with the answers that are here for nothing; what comes out is the same to the byte. The key of an
answer is a hash of everything that it depends on, so the file holds no prompt and no key to a provider.

Safe with threads and with several processes. A record that is torn or was changed is as good as missing: it costs one
call.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

import stamina

from dspy_reflex.errors import JournalError
from dspy_reflex.runtime.lm.model import Completion

FILE = "journal.sqlite3"
WAIT_S = 60.0
"""How long one process waits for another one to finish writing."""
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
  key TEXT PRIMARY KEY,
  answer TEXT NOT NULL,
  checksum TEXT NOT NULL
) WITHOUT ROWID
"""


def key_of(asked: Mapping[str, Any]) -> str:
    """SHA-256 of everything that an answer depends on, in hex."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """Answers by key. Without a file it is a memory that ends with the process."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the file, or make it.

        Raises:
            JournalError: It is no journal, or cannot be opened.
        """
        self._path = path
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        with self._told():
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path or ":memory:", WAIT_S, isolation_level=None, check_same_thread=False)
            self._file.text_factory = _lenient
            for attempt in stamina.retry_context(
                _is_busy, attempts=None, timeout=WAIT_S, wait_initial=0.01, wait_max=0.1
            ):
                with attempt:  # SQLite does not wait by itself where two make a new file at once
                    self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(_TABLE)

    def find(self, key: str) -> Completion | None:
        """The answer of a key, if it is here and whole.

        Raises:
            JournalError: The file cannot be read.
        """
        with self._told(), self._lock:
            found = self._file.execute("SELECT answer, checksum FROM answers WHERE key = ?", (key,)).fetchone()
        return _whole(key, *found) if found else None

    def note(self, key: str, answer: Completion) -> None:
        """Keep an answer; when this returns, a killed process does not lose it any more.

        Raises:
            JournalError: It cannot be written, for example because the disk is full.
        """
        text = json.dumps(astuple(answer))
        row = (key, text, _checksum(key, text))
        with self._told(), self._lock:
            self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", row)

    @contextmanager
    def turn(self, key: str) -> Generator[None]:
        """Whoever asks for a key; others who want the same one wait here, and then find it."""
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            yield

    def close(self) -> None:
        """Give the file back; a thread that still asks for an answer is told that it is closed."""
        with self._lock:
            self._file.close()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"{self._path}: the journal cannot be used ({error}); free some space or name another folder with --run,"
                " or remove the file to pay for its answers again"
            ) from None


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY


def _lenient(text: bytes) -> str:
    """A text whose bytes were changed, too: its checksum tells, where SQLite's own reading would end in an error."""
    return text.decode("utf-8", "replace")


def _whole(key: str, text: Any, checksum: Any) -> Completion | None:
    if not isinstance(text, str) or checksum != _checksum(key, text):
        return None
    return Completion(*json.loads(text))


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()[:16]
