"""Whether everything the loop rests on is well: the store, the recorder, what was left unread, clock, disk, rule files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

from sqlalchemy import func, select

from dspy_reflex.clock import now
from dspy_reflex.errors import StoreError, TargetError
from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.recorder.spool import Spool
from dspy_reflex.records.review import STANDING, FiledProposal
from dspy_reflex.store import proposals
from dspy_reflex.store.counts import count
from dspy_reflex.store.migrate import revision
from dspy_reflex.store.schema import outcomes, quarantine
from dspy_reflex.store.store import Store
from dspy_reflex.targets.block import is_tidy, rules_of
from dspy_reflex.targets.disk import read
from dspy_reflex.targets.files import INTENT
from dspy_reflex.targets.rule import one_line

State = Literal["well", "note", "wrong"]
LEAST_FREE_MB = 100
"""Free space below which recorders may soon lose events."""
AHEAD = timedelta(minutes=5)
"""How far in the future an outcome may lie before clocks are said to differ."""
RECENT = timedelta(days=7)
"""How long what could not be read counts as something wrong; later it is only told."""
SHOWN = 20
"""Pieces in quarantine that are shown one by one."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    told: str
    details: tuple[str, ...] = ()


def checkup(home: Path, open_store: Callable[[], Store], recorder: Callable[[], Recorder]) -> tuple[Check, ...]:
    """Look at everything.

    Args:
        home: Folder of the spool and of half-done patches.
        open_store: Opens the store, with all that was recorded taken in.
        recorder: A recorder of this home.
    """
    found = [_recorder(recorder()), _disk(home)]
    try:
        store = open_store()
        found += [
            _store(store),
            _spool(home),
            _quarantine(store),
            _lost(store),
            _clock(store),
            _patches(home),
            *_rule_files(store),
        ]
    except StoreError as error:
        found += [Check("store", "wrong", str(error)), _spool(home), _patches(home)]
    return tuple(found)


def _store(store: Store) -> Check:
    with store.read() as connection:
        return Check("store", "well", f"{store.where}, revision {revision(connection)}")


def _recorder(recorder: Recorder) -> Check:
    kind, why = recorder.kind, recorder.fallback or recorder.why
    if kind == "none":
        return Check("recorder", "wrong", f"nothing can be recorded: {why}")
    if kind == "append":
        return Check("recorder", "note", f"events are appended to plain files, which takes longer: {why}")
    return Check("recorder", "well", "events are copied into mapped files")


def _spool(home: Path) -> Check:
    spool = Spool(home)
    files = spool.pending()
    left = [path for path in files if not spool.is_alive(path)]
    strays = tuple(f"{path} is not of the spool" for path in spool.strays())
    if left:
        told = (
            f"{len(left)} files of ended processes wait to be taken in; another process may be at it, or see quarantine"
        )
        return Check("spool", "note", told, (*map(str, left), *strays))
    return Check("spool", "note" if strays else "well", f"{len(files)} files are being written to, none waits", strays)


def _quarantine(store: Store) -> Check:
    with store.read() as connection:
        number = connection.scalar(select(func.count()).select_from(quarantine)) or 0
        newest = connection.execute(select(quarantine).order_by(quarantine.c.at.desc()).limit(SHOWN)).all()
    if not number:
        return Check("quarantine", "well", "everything could be read")
    told = tuple(f"{row.file} at byte {row.offset}, {_day(row.at)}: {row.reason}: {row.excerpt!r}" for row in newest)
    state: State = "wrong" if newest[0].at > now() - RECENT else "note"
    more = f", the newest {SHOWN} of them" if number > SHOWN else ""
    return Check("quarantine", state, f"{number} pieces could not be read{more}; `prune` removes old ones", told)


def _lost(store: Store) -> Check:
    with store.read() as connection:
        ever, lately = count(connection).lost, count(connection, since=now() - RECENT).lost
    if not ever:
        return Check("lost", "well", "no recorder has told of a lost event")
    told = f"{ever} events could not be written, {lately} of them in the last {RECENT.days} days; look at disk and home"
    return Check("lost", "wrong" if lately else "note", told)


def _clock(store: Store) -> Check:
    with store.read() as connection:
        newest: datetime | None = connection.scalar(select(func.max(outcomes.c.at)))
    if newest and newest > now() + AHEAD:
        return Check("clock", "wrong", f"the newest outcome is of {newest:%Y-%m-%d %H:%M} UTC, which is yet to come")
    return Check("clock", "well", f"it is {now():%Y-%m-%d %H:%M} UTC, and no outcome is of later")


def _disk(home: Path) -> Check:
    try:
        free_mb = shutil.disk_usage(next(one for one in (home, *home.parents) if one.exists())).free // 2**20
    except OSError as error:
        return Check("disk", "wrong", f"{home}: {error.strerror}")
    state: State = "well" if free_mb >= LEAST_FREE_MB else "wrong"
    return Check("disk", state, f"{free_mb} MB are free at {home}; recording wants {LEAST_FREE_MB}")


def _patches(home: Path) -> Check:
    if (home / "patches" / INTENT).exists():
        return Check(
            "patches", "wrong", "a patch was left half done; the next `apply` or `revert` finishes or undoes it"
        )
    return Check("patches", "well", "none was left half done")


def _rule_files(store: Store) -> Iterator[Check]:
    """Every file in which a rule of ours should stand."""
    with store.read() as connection:
        standing = sorted(proposals.find(connection, STANDING), key=lambda one: one.file)
    for name, rules in groupby(standing, lambda one: one.file):
        wrong = tuple(_file_problems(Path(name), list(rules)))
        yield Check(name, "wrong" if wrong else "well", "not as it was left" if wrong else "as it was left", wrong)


def _file_problems(path: Path, standing: list[FiledProposal]) -> Iterator[str]:
    try:
        content = read(path)
        there = {rule.rule_id: rule.text for rule in rules_of(content, path.name)}
        if not is_tidy(content, path.name):
            yield "the block was changed by hand"
    except TargetError as error:
        yield str(error)
        return
    for one in standing:
        if one.id not in there:
            yield f"the rule of {one.id} is gone"
        elif there[one.id] != one_line(one.rule):
            yield f"the rule of {one.id} reads otherwise"


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"
