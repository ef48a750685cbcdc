"""A plain file that payloads are appended to as lines, where mapped segments are not to be had."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from dspy_reflex.recorder.lines import SUFFIX, pack
from dspy_reflex.recorder.owner import lock, new_name
from dspy_reflex.recorder.writer import FILE_BYTES, FullError, Kind

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)


class AppendFile:
    """One file of lines. Its user sees to it that one thread writes at a time."""

    kind: Kind = "append"

    def __init__(self, folder: Path, size: int = FILE_BYTES) -> None:
        """Make and lock a file.

        Raises:
            OSError: That cannot be done here; nothing is left behind.
        """
        self.path = folder / new_name(SUFFIX)
        self._size = size
        self._used = 0
        self._handle = os.open(self.path, _FLAGS, 0o600)
        try:
            lock(self._handle)
        except BaseException:
            self.forget()
            self.path.unlink()
            raise

    @property
    def is_half_full(self) -> bool:
        """Never: the next one is made in no time."""
        return False

    def write(self, payload: bytes) -> None:
        """Append one line.

        Raises:
            FullError: The file has its size, or was closed.
            OSError: It could not be written, or not all of it.
        """
        line = pack(payload)
        if self._handle < 0 or self._used + len(line) > self._size:
            raise FullError(f"{self._used} bytes used")
        written = os.write(self._handle, line)
        self._used += written
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def flush(self) -> None:
        """Wait until the disk has it.

        Raises:
            OSError: The disk did not take it.
        """
        os.fsync(self._handle)

    def close(self) -> None:
        """Give up the lock."""
        self.forget()
        if not self._used:
            with suppress(OSError):  # a reader may have been faster
                self.path.unlink()

    def forget(self) -> None:
        """Close our descriptor; the lock stays with whoever has another one of the same open file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)
