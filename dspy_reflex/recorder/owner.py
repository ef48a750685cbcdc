"""Whose a file of the spool is: its name says who made it, its lock says whether that process still has it.

The lock is `flock`'s, which belongs to the open file and not to a name or a process id: it ends when the last descriptor
is closed, also by a kill, and takes no system call while it is held. Where a file system has no such locks, the
process id in the name is asked for instead; a process of another machine then counts as alive for ever. Windows does
not let an open file be renamed, and that is asked there.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl

FOLDER = "spool"
"""Of a home."""
_NAME = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-(?P<at>\d+)-(?P<count>\d+)\.(seg|jsonl)")
_HOST = os.uname().nodename if sys.platform != "win32" else os.environ.get("COMPUTERNAME", "windows")
_count = itertools.count()
JUST_MADE_S = 60.0
"""An empty file of this age or less may be about to be locked."""


def new_name(suffix: str) -> str:
    """A file name that nobody else has: machine, process, nanoseconds since 1970, and a number."""
    host = re.sub(r"[^\w.-]", "_", _HOST) or "host"
    return f"{host}-{os.getpid()}-{time.time_ns()}-{next(_count)}{suffix}"


def age_of(path: Path) -> tuple[int, int] | None:
    """What sorts the spool's files by age; None for a file that is not of the spool."""
    match = _NAME.fullmatch(path.name)
    return (int(match["at"]), int(match["count"])) if match else None


def lock(handle: int) -> None:
    """Make an open file its opener's, until every descriptor of it is closed.

    Raises:
        BlockingIOError: Somebody else has it.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # no locks on this file system
            return


def is_owned(path: Path) -> bool:
    """Whether a process still has the file and may write to it.

    Raises:
        FileNotFoundError: It is gone.
    """
    stat = path.stat()
    if stat.st_size == 0 and time.time() - stat.st_mtime < JUST_MADE_S:
        return True
    return _is_open(path) if sys.platform == "win32" else _is_locked(path)


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return _lives(path)
    return False


def _lives(path: Path) -> bool:
    """Whether the process that a name tells of is there, as far as can be known."""
    match = _NAME.fullmatch(path.name)
    if not match or match["host"] != re.sub(r"[^\w.-]", "_", _HOST):
        return match is not None
    try:
        os.kill(int(match["pid"]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _is_open(path: Path) -> bool:
    try:
        path.rename(path)
    except PermissionError:
        return True
    return False
