"""`tune`: join a study, work in it until it is over, and say what came of it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from sqlalchemy.exc import DBAPIError

from dspy_reflex.errors import CompileError, ConfigError
from dspy_reflex.evalset.collect import collect
from dspy_reflex.optimize.rows import digest, train_and_val
from dspy_reflex.optimize.tune.attempt import Say, attempts
from dspy_reflex.optimize.tune.options import TuneOptions, same_command
from dspy_reflex.optimize.tune.outcome import Outcome, outcome
from dspy_reflex.optimize.tune.report import write_report
from dspy_reflex.optimize.tune.sampler import SettingsSampler
from dspy_reflex.optimize.tune.storage import Storage, kind_of, open_storage
from dspy_reflex.optimize.tune.trials import CONFIG
from dspy_reflex.optimize.tune.worker import Worker
from dspy_reflex.runtime.lm.connect import connect

DIRECTIONS = ("maximize", "minimize")
SAID_CHARS = 200


def tune(options: TuneOptions, *, out: Path, say: Say = lambda _: None) -> Outcome:
    """Work in a study until all its trials are over, and write `report.md`, `pareto.png` and `study.json`.

    Any number of workers, on any number of machines, do the same with the same options. One that finds the study over
    does nothing and gives its outcome.

    Args:
        options: The study.
        out: Folder for the files and, below it, the run folders of the trials that are run here.
        say: Told of progress, a line at a time.

    Raises:
        CompileError: No trial has a score.
        ConfigError: An option cannot be used, or the study was begun with others.
        DatasetError: The rows cannot be used.
        ModelError: A model cannot be used or reached; the trial is queued again for whoever goes on.
    """
    found = collect(options.datasets, options.taxonomy, say, left_out=options.leave_out, skip_bad=options.skip_bad)
    train, val = train_and_val(found.sets, options.seed)
    for lm in {*options.space.lms, *options.space.prompt_lms}:
        connect(lm)  # what is missing is said before a study is begun
    with quiet(), _told(options.storage), closing(open_storage(options.storage, options.heartbeat_s)) as storage:
        study = join(options, storage, options.config(found.name, digest(train, val)))
        attempt = attempts(options, val or train, out)
        Worker(study, storage, options.space, options.trials, attempt, say).work()
        came_to = outcome(study, options.trials)
    write_report(came_to, out)
    if not came_to.front:
        reasons = "; ".join(sorted({one.reason for one in came_to.tried if one.reason}))
        raise CompileError(f"none of {len(came_to.tried)} trials has a score: {reasons}")
    return came_to


def join(options: TuneOptions, storage: Storage, config: Mapping[str, Any]) -> optuna.Study:
    """Begin the study, or take part in it.

    Raises:
        ConfigError: It was begun with other options, or by another tool.
    """
    sampler = SettingsSampler(options.space, options.trials, options.seed)
    study = optuna.create_study(
        storage=storage, sampler=sampler, study_name=options.study, directions=DIRECTIONS, load_if_exists=True
    )
    if [direction.name.lower() for direction in study.directions] != list(DIRECTIONS):
        raise ConfigError(f"the study {options.study!r} is not one of ours; name another --study")
    if CONFIG not in study.user_attrs:
        study.set_user_attr(CONFIG, config)
    same_command(options.study, study.user_attrs[CONFIG], config)
    study.set_metric_names([config["metric"], "tokens per call"])
    return study


@contextmanager
def quiet() -> Generator[None]:
    """Optuna logs each trial, and calls most of what is used here experimental; what people see is told by `say`."""
    log, silence = logging.getLogger("optuna"), logging.NullHandler()
    optuna.logging.disable_default_handler()
    log.addHandler(silence)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        log.removeHandler(silence)
        optuna.logging.enable_default_handler()


@contextmanager
def _told(storage: str) -> Generator[None]:
    """A database that is lost on the way, in one sentence."""
    try:
        yield
    except (StorageInternalError, DBAPIError) as error:
        said = " ".join(str(error).split())[:SAID_CHARS]
        raise ConfigError(
            f"--storage: the {kind_of(storage)} storage was lost ({said}); start the same command again to go on"
        ) from None
