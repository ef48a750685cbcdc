"""One file on disk: read, written beside itself, renamed into place, deleted; each seen on disk before it returns."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from dspy_reflex.errors import TargetError


def resolved(path: Path) -> Path:
    """The file that a path leads to, symbolic links followed; a loop of them ends where it closes."""
    return Path(os.path.realpath(path.expanduser()))


def read(path: Path) -> bytes | None:
    """A file's content; None if there is no file.

    Raises:
        TargetError: It is there and cannot be read, or is no regular file.
    """
    try:
        if path.exists() and not path.is_file():
            raise TargetError(f"{path} is no regular file; rules are only written to files")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TargetError(f"{path}: cannot be read: {error.strerror}") from error


def stage(path: Path, content: bytes, mark: str) -> None:
    """Write a content beside its file, with the file's owner and permissions.

    Raises:
        TargetError: It cannot be written, or the file is somebody else's.
    """
    with refusals_of(path):
        beside = staged(path, mark)
        beside.unlink(missing_ok=True)
        there = path.exists()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(beside, flags, 0o600 if there else 0o666)
        with os.fdopen(handle, "wb") as file:
            if there:
                _liken(handle, path)
            file.write(content)
            file.flush()
            os.fsync(handle)


def put(path: Path, mark: str) -> None:
    """Rename what was staged over its file.

    Raises:
        TargetError: It cannot be renamed.
    """
    with refusals_of(path):
        staged(path, mark).replace(path)
        _sync(path.parent)


def delete(path: Path) -> None:
    """Delete a file, if it is there.

    Raises:
        TargetError: It cannot be deleted.
    """
    with refusals_of(path):
        path.unlink(missing_ok=True)
        _sync(path.parent)


def staged(path: Path, mark: str) -> Path:
    """Where a content waits that `mark` staged."""
    return path.with_name(f".{path.name}.{mark}")


@contextmanager
def refusals_of(path: Path) -> Generator[None]:
    """The operating system's refusals as sentences."""
    try:
        yield
    except OSError as error:
        raise TargetError(f"{path}: cannot be written: {error.strerror}") from error


def _liken(handle: int, path: Path) -> None:
    """Give an open file the owner, permissions and, on Linux, access lists and other attributes of another."""
    if sys.platform == "win32":
        return
    like, own = path.stat(), os.fstat(handle)
    if (like.st_uid, like.st_gid) != (own.st_uid, own.st_gid):
        try:
            os.fchown(handle, like.st_uid, like.st_gid)
        except PermissionError:
            raise TargetError(f"{path} belongs to somebody else; run this as its owner") from None
    os.fchmod(handle, stat.S_IMODE(like.st_mode))
    if sys.platform == "linux":
        _copy_attributes(handle, path)


def _copy_attributes(handle: int, path: Path) -> None:
    """Extended attributes, as far as the file system has them and lets us."""
    if sys.platform == "linux":
        names = list[str]()
        with suppress(OSError):
            names = os.listxattr(path)
        for name in names:
            with suppress(OSError):
                os.setxattr(handle, name, os.getxattr(path, name))


def _sync(folder: Path) -> None:
    """See a renaming on disk; Windows cannot open folders and needs no such thing."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
