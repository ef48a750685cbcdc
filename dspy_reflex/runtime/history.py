"""Who became current, when and why: `history.jsonl` beside `current.json`, one line a move, never rewritten.

A program becomes current in three steps, each safe to die after: its file, the line of history, `current.json`. What is
current is always what `current.json` says; a line whose change was never made is passed over when the way back is
looked for. A line that cannot be read stays where it is, is named, and harms no other. One process at a time moves the
programs of a folder; the others wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout
from pydantic import ValidationError

from dspy_reflex.errors import ProgramError
from dspy_reflex.files import write_atomic
from dspy_reflex.records.move import Move
from dspy_reflex.runtime.artifact import Artifact, dumps, read
from dspy_reflex.runtime.library import current, set_current

HISTORY, LOCK = "history.jsonl", ".lock"
WAIT_S = 10.0
"""How long a move waits for another process's, which takes milliseconds."""


@dataclass(frozen=True, slots=True)
class History:
    """The moves of one program, oldest first."""

    moves: tuple[Move, ...]
    damaged: tuple[str, ...]
    """`file:line` of every line that cannot be read."""

    def decided(self, rows: str) -> int:
        """How often a test set has decided, for whatever model; `rows` is its digest."""
        return sum(move.rows == rows for move in self.moves)

    def previous(self, model: str, version: str) -> str | None:
        """The version that was current for a model before this one; None if there was none."""
        line: list[str] = []
        for move in self.moves:
            if move.model == model and move.action != "refuse":
                line = _up_to(line, move.before) if move.before else []
                line = _up_to(line, move.after) if move.action == "rollback" else [*line, move.after]
        return next(iter(_up_to(line, version)[-2:-1]), None)


def _up_to(line: list[str], version: str) -> list[str]:
    """The line of succession as it was when a version was last current; one that nobody noted is put at its end."""
    if version not in line:
        return [*line, version]
    return line[: len(line) - line[::-1].index(version)]


def history(folder: Path, program: str) -> History:
    """Read what was decided about a program in a library; empty where nothing was."""
    path = folder / program / HISTORY
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return History((), ())
    found = [(number, _move(line)) for number, line in enumerate(lines, start=1) if line.strip()]
    return History(
        tuple(move for _, move in found if move), tuple(f"{path}:{number}" for number, move in found if not move)
    )


def _move(line: bytes) -> Move | None:
    try:
        return Move.model_validate_json(line)
    except ValidationError:
        return None


def note(folder: Path, program: str, move: Move) -> None:
    """Append one move; it is on the disk when this returns.

    Raises:
        ProgramError: Another process has been at it for too long.
    """
    with _alone(folder, program):
        _append(folder / program / HISTORY, move)


def _append(path: Path, move: Move) -> None:
    line = move.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"
    with path.open("ab+") as file:
        file.write(line if _on_a_new_line(file) else b"\n" + line)
        file.flush()
        os.fsync(file.fileno())


def _on_a_new_line(file: BinaryIO) -> bool:
    """Whether what is appended starts a line: not after one that was torn by a crash."""
    if file.tell() == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


@contextmanager
def _alone(folder: Path, program: str) -> Generator[None]:
    """Be the only process that moves the programs of a folder.

    Raises:
        ProgramError: Another one has been at it for too long.
    """
    place = folder / program
    place.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place / LOCK, timeout=WAIT_S)
    try:
        lock.acquire()
    except Timeout:
        raise ProgramError(f"{place}: another process is moving its programs; wait until it is done") from None
    try:
        yield
    finally:
        lock.release()


def first(folder: Path, artifact: Artifact) -> bool:
    """Make a program current if its model has none yet; says whether it did. All later ones need `promote`.

    Raises:
        ProgramError: `current.json` is damaged, or another process has been at it for too long.
    """
    reason = "the first program of its model"
    with _alone(folder, artifact.program):
        if artifact.model in current(folder, artifact.program):
            return False
        _make_current(
            folder, artifact, Move(action="first", model=artifact.model, after=artifact.version, reason=reason)
        )
        return True


def guide(folder: Path, artifact: Artifact, labels: str) -> None:
    """Put a guide-only program into the library and make it current: it is no candidate, it says what the labels mean.

    Args:
        folder: The library.
        artifact: The program.
        labels: The label set it was written from, for the history.

    Raises:
        ProgramError: `current.json` is damaged, or another process has been at it for too long.
    """
    with _alone(folder, artifact.program):
        now = current(folder, artifact.program).get(artifact.model)
        write_atomic(folder / artifact.program / f"{artifact.version}.json", dumps(artifact).encode())
        if now != artifact.version:
            reason = f"the label set {labels} as it is now"
            move = Move(action="guide", model=artifact.model, before=now, after=artifact.version, reason=reason)
            _make_current(folder, artifact, move)


def promote(folder: Path, artifact: Artifact, move: Move) -> None:
    """Put a program into the library and make it its model's current one.

    Args:
        folder: The library.
        artifact: The program.
        move: Why; `before` is what it was compared with or, where the model had none, None.

    Raises:
        ProgramError: Another program has become current in the meantime, another process has been at it for too long,
            or `current.json` is damaged.
    """
    with _alone(folder, artifact.program):
        now = current(folder, artifact.program).get(artifact.model)
        if now != move.before:
            raise ProgramError(
                f"{folder / artifact.program}: {now or 'no program'} is current for {artifact.model} by now, not "
                f"{move.before or 'none'}; promote again to compare with it"
            )
        _make_current(folder, artifact, move)


def _make_current(folder: Path, artifact: Artifact, move: Move) -> None:
    """The three steps."""
    write_atomic(folder / artifact.program / f"{artifact.version}.json", dumps(artifact).encode())
    _append(folder / artifact.program / HISTORY, move)
    set_current(folder, artifact)


def rollback(folder: Path, program: str, model: str, by: str | None = None) -> Move:
    """Make the previous program of a model current again.

    Raises:
        ProgramError: There is none, its file is gone or damaged, or another process has been at it for too long.
    """
    _way_back(folder, program, model)  # where there is none, no folder is made for the lock
    with _alone(folder, program):
        now, before = _way_back(folder, program, model)
        artifact = read(folder / program / f"{before}.json")
        move = Move(action="rollback", model=model, before=now, after=before, reason=f"back from {now}", by=by)
        _append(folder / program / HISTORY, move)
        set_current(folder, artifact)
        return move


def _way_back(folder: Path, program: str, model: str) -> tuple[str, str]:
    """The current version, and the one before it."""
    now = current(folder, program).get(model)
    before = history(folder, program).previous(model, now) if now else None
    if now is None or before is None:
        raise ProgramError(
            f"{folder / program}: there is no program to go back to for {model}; "
            "`dspy-reflex programs history` shows the moves"
        )
    return now, before


def can_go_back(folder: Path, program: str) -> list[str]:
    """The models whose current program has a previous one."""
    known = history(folder, program)
    return [model for model, version in current(folder, program).items() if known.previous(model, version)]
