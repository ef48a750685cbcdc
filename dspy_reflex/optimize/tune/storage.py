"""Where a study lives, by URL: Optuna's journal file or a database, and how a dead worker is noticed in each.

Optuna 5.0 gives up the trial of a dead worker, and queues it again, for databases only. Here its journal file learns the
same: signs of life are ordinary attributes in it, so any Optuna and its dashboard read the file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import stamina
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from dspy_reflex.errors import ConfigError, MissingExtraError

HEARTBEAT_S = 15
"""Seconds between two signs of life of a worker."""
MISSED = 4
"""Signs of life that may be missed before a worker is taken for dead."""
RETRIES = 3
"""How often a trial is begun again; one that kills every worker would otherwise kill them all."""
CLAIMED = "claimed"
"""The attribute that a worker gives a trial after its first sign of life: the trial's number, for a trial that is run again
has those of the one before."""
BEAT = "reflex:heartbeat"
JOURNAL = "journal"
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
"""Databases, and the driver of each."""
FOREIGN = (ValueError, KeyError, TypeError, RuntimeError)
"""What Optuna raises on reading what it did not write, or another version of it did."""
SETUP_TRIES = 10
"""Workers that open an empty database together make its tables in each other's way; later tries find them made."""


def open_storage(url: str, heartbeat_s: int = HEARTBEAT_S) -> Storage:
    """Open the storage of a URL, or make it: `journal:PATH`, `sqlite:///PATH` or `postgresql://USER@HOST/DATABASE`.

    Args:
        url: As SQLAlchemy has it, apart from `journal:`. PostgreSQL is always reached through psycopg 3.
        heartbeat_s: Seconds between two signs of life.

    Raises:
        ConfigError: The URL is none of these, or the database cannot be opened.
        MissingExtraError: psycopg is not installed.
    """
    kind, _, rest = url.partition(":")
    place = None if kind == JOURNAL and rest else _database(url)
    if file := rest if place is None else place.get_backend_name() == "sqlite" and place.database:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    try:
        return WatchedJournal(rest, heartbeat_s) if place is None else _opened(place, heartbeat_s)
    except FOREIGN as error:
        raise ConfigError(f"--storage {place or url}: was not written by this version of Optuna ({error})") from None
    except ImportError:
        raise MissingExtraError("a study in PostgreSQL", "postgresql") from None
    except DBAPIError as error:
        said = " ".join(str(error.orig).split())
        raise ConfigError(f"--storage {place}: cannot be opened ({said}); check address, name and password") from None


def kind_of(url: str) -> str:
    """What sort of storage a URL names, without its address: `journal`, `sqlite` or `postgresql`."""
    return url.partition(":")[0].partition("+")[0]


class Watch:
    """Things that should change now and then. Only this process's own clock is read, so no two have to agree."""

    def __init__(self, patience_s: float) -> None:
        """Start with nothing seen."""
        self._patience_s = patience_s
        self._seen: dict[int, tuple[object, float]] = {}

    def still(self, signs: Mapping[int, object]) -> list[int]:
        """Those whose sign has been the same for longer than the patience; what is not named any more is forgotten."""
        now = time.monotonic()
        known = {key: self._seen.get(key, (sign, now)) for key, sign in signs.items()}
        self._seen = {key: known[key] if known[key][0] == sign else (sign, now) for key, sign in signs.items()}
        return [key for key, (_, since) in self._seen.items() if now - since > self._patience_s]


class WatchedJournal(JournalStorage, BaseHeartbeat):
    """Optuna's journal file, with signs of life in it."""

    def __init__(self, path: str, heartbeat_s: int) -> None:
        """Open the file, or make it."""
        super().__init__(JournalFileBackend(path))
        self._heartbeat_s = heartbeat_s
        self._watch = Watch(MISSED * heartbeat_s)

    def close(self) -> None:
        """Nothing is held open."""

    def record_heartbeat(self, trial_id: int) -> None:
        """Renew a trial's sign of life, unless somebody has given the trial up."""
        with suppress(UpdateFinishedTrialError):
            self.set_trial_system_attr(trial_id, BEAT, time.time())

    def get_heartbeat_interval(self) -> int:
        """Seconds between two signs of life."""
        return self._heartbeat_s

    def get_heartbeat_stale_trial_callback(self) -> Any:
        """What is done with a trial that was given up: it is queued again."""
        return RetryHeartbeatStaleTrialCallback(RETRIES)

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        return self._watch.still({trial._trial_id: trial.system_attrs.get(BEAT) for trial in running})  # pyright: ignore[reportPrivateUsage]


class WatchedDatabase(RDBStorage):
    """Optuna's database, which also gives up trials whose worker died before its first sign of life."""

    def __init__(self, place: URL, heartbeat_s: int) -> None:
        """Connect, and make the tables where there are none."""
        waits = {"connect_args": {"timeout": 60}} if place.get_backend_name() == "sqlite" else {}
        super().__init__(
            place.render_as_string(hide_password=False),
            engine_kwargs={"pool_pre_ping": True, **waits},
            heartbeat_interval=heartbeat_s,
            grace_period=MISSED * heartbeat_s,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(RETRIES),
        )
        self._watch = Watch(MISSED * heartbeat_s)

    def close(self) -> None:
        """Give the connections back."""
        self.scoped_session.remove()
        self.engine.dispose()

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        unclaimed = {trial._trial_id: None for trial in running if trial.user_attrs.get(CLAIMED) != trial.number}  # pyright: ignore[reportPrivateUsage]
        return sorted({*super()._get_stale_trial_ids(study_id), *self._watch.still(unclaimed)})


Storage = WatchedJournal | WatchedDatabase
"""What a study lives in."""


def _database(url: str) -> URL:
    try:
        place = make_url(url)
    except ArgumentError:
        place = None
    if place is None or place.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(
            "--storage takes journal:PATH, sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE, not "
            f"{place or 'this'}"
        )
    return place.set(drivername=DRIVERS[place.get_backend_name()])


def _opened(place: URL, heartbeat_s: int) -> Storage:
    for attempt in stamina.retry_context(_met_another, attempts=SETUP_TRIES, wait_initial=0.05, wait_max=1.0):
        with attempt:
            return WatchedDatabase(place, heartbeat_s)
    raise AssertionError


def _met_another(error: Exception) -> bool:
    """Whether another worker was making the same tables."""
    return isinstance(error, DBAPIError) and (
        "already exists" in str(error) or "duplicate key" in str(error) or "UNIQUE" in str(error)
    )
