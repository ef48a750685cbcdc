"""What the trials of a study are to each other: which ones are new, and which are another one run again."""

from __future__ import annotations

from collections.abc import Sequence

from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState

CONFIG = "config"
"""The study's attribute with what all its workers agree on."""
REASON = "reason"
"""The attribute that says why a trial has no score."""
WORKER = "worker"
"""The attribute that says where a trial was run."""
SURPLUS = "surplus: two workers reached for the last trial at once; nothing was asked"


def history(trial: FrozenTrial) -> list[int]:
    """The numbers of the trials that this one runs again, the oldest first; empty for a new one."""
    return RetryHeartbeatStaleTrialCallback.retry_history(trial)


def origin(trial: FrozenTrial) -> int:
    """The number of the trial that this one is, or runs again."""
    return next(iter(history(trial)), trial.number)


def fresh(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those that run no other one again: what `--trials` counts."""
    return [trial for trial in trials if not history(trial)]


def place(trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> int:
    """The place of a trial, or of the one that it runs again, among the new ones, from 0."""
    return sum(each.number < origin(trial) for each in fresh(trials))


def in_state(trials: Sequence[FrozenTrial], state: TrialState) -> list[FrozenTrial]:
    """Those in a state."""
    return [trial for trial in trials if trial.state == state]
