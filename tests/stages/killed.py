"""A process that applies or reverts rules and is killed before one of its steps."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sqlalchemy import event

from dspy_reflex.config import Settings
from dspy_reflex.stages.patching.apply import apply
from dspy_reflex.stages.patching.revert import revert_to
from dspy_reflex.store.store import Store

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("os.rename", "os.remove", "os.mkdir")
KILLED = -getattr(signal, "SIGKILL", 9)


def run_until(step: int, url: str, settings: Settings, ids: list[str] | datetime) -> bool:
    """Apply these proposals, or revert to this time, in a process that is killed before its so-manyth step.

    Returns:
        Whether it was killed; False where it has fewer steps.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    child = context.Process(target=_child, args=(step, url, settings.model_dump(mode="json"), ids))
    child.start()
    child.join()
    assert child.exitcode in (0, KILLED)
    return child.exitcode == KILLED


def _child(last: int, url: str, told: dict[str, Any], ids: list[str] | datetime) -> None:
    settings = Settings.model_validate(told)
    with Store(url) as store:
        _kill_before(last, store, settings.home.parent)
        if isinstance(ids, datetime):
            revert_to(store, settings, ids, by="ada", reason="no")
        else:
            apply(store, settings, ids, by="ada")


def _kill_before(last: int, store: Store, folder: Path) -> None:
    """A step is a change of a file in this folder, the store's own apart, and what surrounds the commit of a transaction."""
    steps = iter(range(1, last))

    def step(*_: object) -> None:
        if next(steps, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(store.engine, "commit", step)
    event.listen(store.engine, "checkin", step)
    sys.addaudithook(_at_changes_below(folder, step))


def _at_changes_below(folder: Path, step: Callable[[], None]) -> Callable[[str, tuple[Any, ...]], None]:
    def seen(name: str, said: tuple[Any, ...]) -> None:
        changes = name in CHANGES or (name == "open" and isinstance(said[2], int) and said[2] & WRITING)
        if changes and isinstance(said[0], str | os.PathLike) and str(folder) in os.fspath(said[0]):
            step()

    return seen
