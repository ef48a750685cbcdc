"""A mapped file that payloads are copied into as frames: no system call, so nothing to wait for.

A write to a file lets go of the interpreter's lock, and with one busy thread in the process it may be 5 ms before it is
had again. A copy into mapped memory keeps it; the kernel owns the pages and writes them out by itself, also after the
process was killed. The space is allocated before, for a full disk would otherwise show as a SIGBUS in the copy. The
pages are not touched before (MAP_POPULATE): CPython holds its lock meanwhile, and the faults that this saves cost less.
"""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path

from dspy_reflex.recorder.frames import SUFFIX, pack
from dspy_reflex.recorder.owner import lock, new_name
from dspy_reflex.recorder.writer import FILE_BYTES, FullError, Kind


class Segment:
    """One mapped file. Its user sees to it that one thread writes at a time."""

    kind: Kind = "mapped"

    def __init__(self, folder: Path, size: int = FILE_BYTES) -> None:
        """Make, lock, allocate and map a file.

        Raises:
            OSError: One of these cannot be done here; nothing is left behind.
        """
        self.path = folder / new_name(SUFFIX)
        self._half = size // 2
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            lock(handle)
            _allocate(handle, size)
            self._map = mmap.mmap(handle, size)  # holds a descriptor of its own, and with it the lock
        except BaseException:
            self.path.unlink()
            raise
        finally:
            os.close(handle)

    @property
    def is_half_full(self) -> bool:
        """Whether it is time to think of the next one."""
        return self._map.tell() > self._half

    def write(self, payload: bytes) -> None:
        """Copy one frame to where the last one ended.

        Raises:
            FullError: There is no room for it, or the file was closed.
        """
        frame = pack(payload)
        try:
            self._map.write(frame)
        except ValueError as error:
            raise FullError(str(error)) from None

    def flush(self) -> None:
        """Wait until the disk has it.

        Raises:
            OSError: The disk did not take it.
        """
        self._map.flush()

    def close(self) -> None:
        """Cut off what was not used, and give up the lock."""
        if self._map.closed:
            return
        used = self._map.tell()
        self._map.close()
        with suppress(OSError):  # a reader may have been faster
            os.truncate(self.path, used) if used else self.path.unlink()

    def forget(self) -> None:
        """Unmap it; the lock stays with the parent, which has its own descriptor of the same open file."""
        self._map.close()


def _allocate(handle: int, size: int) -> None:
    if sys.platform in ("win32", "darwin"):
        raise OSError("no posix_fallocate on this system")
    os.posix_fallocate(handle, 0, size)
