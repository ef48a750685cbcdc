"""Where a process's payloads go: always one file with room, the next one made ready before it is needed.

One lock is held around a copy of some hundred nanoseconds; it may be taken again by the thread that has it, so that a
signal handler can record, too. Helpers are bare threads: starting one does not wait until it runs, as `threading` does.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dspy_reflex.recorder.append import AppendFile
from dspy_reflex.recorder.segment import Segment
from dspy_reflex.recorder.writer import FILE_BYTES, FullError, Kind, Writer


class Outlet:
    """Takes payloads for one folder. Safe with threads, forks and signal handlers."""

    retry_s = 5.0
    """How long nothing is tried after no file of either kind could be made."""

    def __init__(self, folder: Path, size: int = FILE_BYTES) -> None:
        """Make the folder and a file if that can be; if not, `write` will try again."""
        self.fallback = ""
        """Why files are not mapped; empty if they are."""
        self._folder, self._size = folder, size
        self._lock = threading.RLock()
        self._writer: Writer | None = None
        self._spare: Writer | None = None
        self._preparing = False
        self._retry_at_s = 0.0
        with suppress(OSError):
            self._folder = folder.absolute()  # an agent may change its working directory
            self._writer = self._made()
        _outlets.add(self)

    @property
    def kind(self) -> Kind:
        """How payloads are written at present."""
        with self._lock, suppress(OSError):
            self._writer = self._writer or self._made()
        return self._writer.kind if self._writer else "none"

    def write(self, payload: bytes) -> None:
        """Write one payload; on return it survives the death of the process.

        Raises:
            FullError: It is larger than a file.
            OSError: It could not be written, as no file could be made or the disk is full.
        """
        with self._lock:
            writer = self._writer = self._writer or self._made()
            try:
                writer.write(payload)
            except FullError:
                writer = self._next(writer)
                writer.write(payload)
            if not (self._spare or self._preparing) and writer.is_half_full:
                self._start_preparing()

    def flush(self) -> None:
        """Wait until the disk has all that was written.

        Raises:
            OSError: The disk did not take it.
        """
        with self._lock:
            if self._writer:
                self._writer.flush()

    def close(self) -> None:
        """Give all files to their readers; what is written later goes to new ones."""
        with self._lock:
            for writer in (self._writer, self._spare):
                if writer:
                    writer.close()
            self._writer = self._spare = None

    def start_anew(self) -> None:
        """Leave files, lock and helpers to the parent: the first thing in a child after a fork."""
        for writer in (self._writer, self._spare):
            if writer:
                writer.forget()
        self._lock = threading.RLock()
        self._writer = self._spare = None
        self._preparing = False

    def _next(self, full: Writer) -> Writer:
        """The file after a full one, which is given to its readers; unmapping it would take a millisecond here."""
        writer, self._spare = self._spare or self._made(), None
        self._writer = writer
        if not _in_background(full.close):
            full.close()
        return writer

    def _start_preparing(self) -> None:
        self._preparing = True
        if not _in_background(self._prepare):
            self._preparing = False  # the next one is made when this one is full

    def _prepare(self) -> None:
        with suppress(OSError):  # tried again, and told of, when the file is full
            self._spare = self._made()
        self._preparing = False

    def _made(self) -> Writer:
        """A new file, mapped if that can be.

        Raises:
            OSError: Not even a plain one can be made.
        """
        if time.monotonic() < self._retry_at_s:
            raise OSError(self.fallback)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._mapped() or AppendFile(self._folder, self._size)
        except OSError as error:
            self.fallback, self._retry_at_s = str(error), time.monotonic() + self.retry_s
            raise

    def _mapped(self) -> Segment | None:
        try:
            segment = Segment(self._folder, self._size)
        except OSError as error:
            self.fallback = str(error)
            return None
        self.fallback = ""
        return segment


def _in_background(work: Callable[[], None]) -> bool:
    """Run it in a thread; False if there can be none, as at the end of the interpreter."""
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:
        return False
    return True


_outlets: weakref.WeakSet[Outlet] = weakref.WeakSet()


def _close_all() -> None:
    for outlet in _outlets:
        outlet.close()


def _start_all_anew() -> None:
    for outlet in _outlets:
        outlet.start_anew()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_anew)
