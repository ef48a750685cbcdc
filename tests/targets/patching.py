"""Three files and a store changed as one act, by a process that dies where it is told to.

`python patching.py FOLDER` kills a process at every step there is, and the one that comes next at every step of its own, and
prints what each left behind as JSON. Processes are forks of this one, which has no threads, so a kill costs milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dspy_reflex.targets.files import Pause, Recovered, applier
from dspy_reflex.targets.intent import Change

BEFORE = {"SOUL.md": "- soul\n", "AGENTS.md": None, "TOOLS.md": "made for us"}
AFTER = {"SOUL.md": "- soul\n- more\n", "AGENTS.md": "- new\n", "TOOLS.md": None}
PATCH = "patch_1"


def lay_out(folder: Path) -> Path:
    """A folder with the files as they are before."""
    (folder / "agent").mkdir(parents=True)
    for name, content in BEFORE.items():
        if content is not None:
            (folder / "agent" / name).write_text(content)
    return folder


def changes(folder: Path) -> list[Change]:
    """What the patch wants."""
    texts = [(name, BEFORE[name], AFTER[name]) for name in BEFORE]
    return [Change(folder / "agent" / name, old and old.encode(), new and new.encode()) for name, old, new in texts]  # pyright: ignore[reportArgumentType]


def files(folder: Path) -> dict[str, str | None]:
    """The files as they are, and any other in their folder."""
    return dict.fromkeys(BEFORE) | {path.name: path.read_text() for path in (folder / "agent").iterdir()}


def left_behind(folder: Path) -> list[str]:
    """What is in the home's folder of patches, the lock apart."""
    return sorted(path.name for path in (folder / "home" / "patches").iterdir() if path.name != "lock")


def is_applied(folder: Path) -> bool:
    """Whether the store has the patch; the store is a file."""
    return (folder / PATCH).exists()


def patch(folder: Path, pause: Pause) -> None:
    """Change everything."""

    def commit() -> None:
        pause("before the store")
        (folder / PATCH).touch()
        pause("behind the store")

    act(folder, changes(folder), commit, lambda one: (folder / one).exists(), pause)


def act(
    folder: Path, wanted: Sequence[Change], commit: Callable[[], object], applied: Callable[[str], bool],
    pause: Pause = lambda _: None, wait_s: float = 10.0,
) -> None:  # fmt: skip
    """Change some files, with a store of one's own."""
    with applier(folder / "home", applied, wait_s=wait_s, pause=pause) as (one, _), one.written(PATCH, wanted):
        commit()


def recover(folder: Path, pause: Pause = lambda _: None) -> Recovered | None:
    """Come next."""
    with applier(folder / "home", lambda one: (folder / one).exists(), pause=pause) as (_, recovered):
        return recovered


def killed(run: Callable[[Path, Pause], object], folder: Path, at: int) -> bool:
    """Whether a process that runs this died at its `at`-th step; if not, it had fewer."""
    child = os.fork()
    if child == 0:
        left = iter(range(at, -1, -1))
        run(folder, lambda _: os.kill(os.getpid(), signal.SIGKILL) if next(left) == 0 else None)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main(folder: Path) -> list[dict[str, Any]]:
    """What is left of every death."""
    found: list[dict[str, Any]] = []

    def note(scratch: Path, *deaths: int) -> None:
        recovered = recover(scratch)
        found.append({
            "deaths": deaths, "applied": is_applied(scratch), "files": files(scratch), "left": left_behind(scratch),
            "finished": recovered and recovered.finished,
        })  # fmt: skip

    first = 0
    while killed(patch, scratch := lay_out(folder / f"{first}"), first):
        note(scratch, first)
        second = 0
        while killed(patch, scratch := lay_out(folder / f"{first}-{second}"), first) and killed(
            recover, scratch, second
        ):
            note(scratch, first, second)
            second += 1
        first += 1
    return found


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1])), sys.stdout)
