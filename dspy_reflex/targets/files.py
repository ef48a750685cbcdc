"""Rule files, and the store's word about them, changed as one act: all of it happens, or none.

An intent file says what is going to be done, contents included, and is on disk before any rule file is touched. It goes
when all is done. A process that dies in between leaves it behind, and whoever comes next finishes or undoes what it
says: finishes if the store has the patch, else undoes.

    intent ─▶ new contents beside the files ─▶ renamed over them ─▶ the store commits ─▶ deletions ─▶ intent removed

Accepted: between the last look at a file and its renaming, some microseconds, an editor's save would be lost. Hard links
to a rule file keep its old content.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.disk import delete, put, read, refusals_of, resolved, stage, staged
from dspy_reflex.targets.intent import Change, Intent, dumps, loads

INTENT, LOCK = "intent.json", "lock"
WAIT_S = 10.0
"""How long to wait for another process that is applying patches."""

Pause = Callable[[str], None]
"""Called with the name of each step as soon as it is done."""


@dataclass(frozen=True)
class Recovered:
    """What was found half done, and what was made of it."""

    patch_id: str
    """The patch."""
    finished: bool
    """True: its files are as it wanted them. False: they are as they were."""
    paths: tuple[Path, ...]
    """Its files."""


@dataclass(frozen=True)
class Applier:
    """Changes rule files while it holds the lock. Made by `applier`."""

    folder: Path
    """Where the intent file is."""
    applied: Callable[[str], bool]
    """Whether the store has a patch: what decides about a half-done one."""
    pause: Pause

    @contextmanager
    def written(self, patch_id: str, changes: Sequence[Change]) -> Generator[None]:
        """Change files for as long as the body runs, and for good if it ends well; the body commits to the store.

        If the body raises, the files go back, unless the store has the patch nevertheless.

        Args:
            patch_id: What `applied` will know as soon as the body has committed.
            changes: At most one for a file. One that changes nothing is passed over.

        Raises:
            TargetError: A file is not what it was when it was read, or cannot be written; says which. Nothing is changed.
        """
        intent = Intent(patch_id, tuple(_resolved(each) for each in changes if each.before != each.after))
        if len({each.path for each in intent.changes}) < len(intent.changes):
            raise ValueError("two changes of one file; put them into one")
        for change in intent.changes:
            _check(change)
        try:
            self._announce(intent)
            self._write(intent)
            yield
        except BaseException:
            self.recover()
            raise
        self.pause("committed")
        self._end(intent)

    def recover(self) -> Recovered | None:
        """Finish or undo what was left half done; None if nothing was.

        Raises:
            TargetError: A file is neither what it was nor what it was to become. Nothing is touched.
        """
        path = self.folder / INTENT
        for rest in self.folder.glob(f".{INTENT}.*"):
            rest.unlink()
        content = read(path)
        if content is None:
            return None
        intent = loads(content, str(path))
        finished = self.applied(intent.patch_id)
        foreign = [each.path for each in intent.changes if read(each.path) not in (each.before, each.after)]
        if foreign:
            raise TargetError(
                f"{foreign[0]} was changed while {intent.patch_id} was half done, so it is left as it is; "
                f"{'finish' if finished else 'undo'} the patch by hand, then delete {path}"
            )
        for change in intent.changes if finished else map(_undone, intent.changes):
            if change.after is not None and read(change.path) != change.after:
                self._stage(change.path, change.after, intent.patch_id)
                self._put(change.path, intent.patch_id)
        self._end(intent if finished else replace(intent, changes=tuple(map(_undone, intent.changes))))
        return Recovered(intent.patch_id, finished, tuple(each.path for each in intent.changes))

    def _announce(self, intent: Intent) -> None:
        path = self.folder / INTENT
        self._stage(path, dumps(intent), intent.patch_id)
        self._put(path, intent.patch_id)

    def _write(self, intent: Intent) -> None:
        """Put the new contents in place.

        Files that are to go stay until the store has committed: so none is ever brought back with other permissions.
        """
        lasting = [(each, each.after) for each in intent.changes if each.after is not None]
        for change, after in lasting:
            self._stage(change.path, after, intent.patch_id)
        for change, _ in lasting:
            _check(change)
            self._put(change.path, intent.patch_id)

    def _end(self, intent: Intent) -> None:
        """Delete what is to go, and what may lie about; the intent last."""
        for change in intent.changes:
            staged(change.path, intent.patch_id).unlink(missing_ok=True)
            if change.after is None and change.path.exists():
                _check(change)
                delete(change.path)
                self.pause(f"deleted {change.path.name}")
        delete(self.folder / INTENT)
        self.pause("ended")

    def _stage(self, path: Path, content: bytes, patch_id: str) -> None:
        stage(path, content, patch_id)
        self.pause(f"staged {path.name}")

    def _put(self, path: Path, patch_id: str) -> None:
        put(path, patch_id)
        self.pause(f"put {path.name}")


@contextmanager
def applier(
    home: Path, applied: Callable[[str], bool], *, wait_s: float = WAIT_S, pause: Pause = lambda _: None
) -> Generator[tuple[Applier, Recovered | None]]:
    """Be the only one who changes rule files, with what an earlier process left half done finished or undone.

    Args:
        home: The loop's home; its folder `patches` is made if it is not there.
        applied: Whether the store has a patch, by its id.
        wait_s: How long to wait for another process, in seconds.
        pause: Called after each step; for tests.

    Raises:
        TargetError: Another process is at it, or a half-done patch can be neither finished nor undone.
    """
    folder = home.expanduser() / "patches"
    with refusals_of(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = FileLock(folder / LOCK, timeout=wait_s)
    with refusals_of(folder):
        _acquire(lock, home)
    try:
        one = Applier(folder, applied, pause)
        yield one, one.recover()
    finally:
        lock.release()


def _acquire(lock: FileLock, home: Path) -> None:
    try:
        lock.acquire()
    except Timeout:
        raise TargetError(f"{home}: another process is applying patches; wait until it is done") from None


def _resolved(change: Change) -> Change:
    """The change of the file itself, whatever symbolic links lead to it."""
    return replace(change, path=resolved(change.path))


def _undone(change: Change) -> Change:
    return Change(change.path, change.after, change.before)


def _check(change: Change) -> None:
    """That a file is what it was when it was read, and may be written."""
    path = change.path
    if read(path) != change.before:
        raise TargetError(f"{path} was changed since it was read; look at it, then try again")
    if not path.parent.is_dir():
        raise TargetError(f"{path.parent}: no such folder; make it first")
    if change.before is not None and not os.access(path, os.W_OK):
        raise TargetError(f"{path} may not be written; change its permissions first")
