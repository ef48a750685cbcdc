"""One worker of a study. Any number of them share it through its storage and know nothing else of each other."""

from __future__ import annotations

import os
import socket
import time

from optuna import Study, Trial, TrialPruned
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from dspy_reflex.errors import CompileError, ReflexError
from dspy_reflex.optimize.tune.attempt import Attempt, Found, Say
from dspy_reflex.optimize.tune.space import Space, words
from dspy_reflex.optimize.tune.storage import CLAIMED, Storage
from dspy_reflex.optimize.tune.trials import REASON, SURPLUS, WORKER, fresh, history, in_state, origin, place


class Worker:
    """Runs trials until none is left, waits for those of others, and takes over what a dead one left."""

    def __init__(self, study: Study, storage: Storage, space: Space, trials: int, attempt: Attempt, say: Say) -> None:
        """Join a study of so many trials."""
        self._study, self._storage, self._space = study, storage, space
        self._trials, self._attempt, self._say = trials, attempt, say
        self._number: int | None = None
        self._ends_all: ReflexError | OSError | None = None

    def work(self) -> None:
        """Return when every trial of the study is over.

        Raises:
            ReflexError: A model cannot be reached, or something else that would end every trial alike. The trial is
                queued again, for whoever joins next.
            OSError: The same, of a file.
        """
        waited_for: list[int] = []
        while True:
            fail_stale_trials(self._study)
            trials = self._study.get_trials(deepcopy=False)
            running = [trial.number for trial in in_state(trials, TrialState.RUNNING)]
            if in_state(trials, TrialState.WAITING) or len(fresh(trials)) < self._trials:
                self._run_one()
            elif running:
                if running != waited_for:
                    self._say(f"waiting for trial {', '.join(map(str, running))} of other workers")
                waited_for = running
                time.sleep(self._storage.get_heartbeat_interval() or 1)
            else:
                return

    def _run_one(self) -> None:
        self._number = self._ends_all = None
        try:
            self._study.optimize(self._objective, n_trials=1, catch=(Exception,))
        except KeyboardInterrupt:
            self._queue_again()
            raise
        except (AssertionError, ValueError, UpdateFinishedTrialError):
            if not self._given_up():  # what Optuna says of a trial that is over has no type of its own
                raise
            self._say(f"trial {self._number}: another worker took it over meanwhile; its outcome here is not used")
        if self._ends_all:
            self._queue_again()
            raise self._ends_all

    def _objective(self, trial: Trial) -> tuple[float, float]:
        """One trial; without a score it says why, and Optuna logs nothing."""
        self._number = trial.number
        self._claim(trial)
        run = f"trial-{origin(self._frozen())}"
        try:
            point = self._space.suggest(trial)
            self._say(f"{run}: {words(trial.params)}")
            found = self._known(trial) or self._attempt(point, run, lambda line: self._say(f"{run}: {line}"))
        except CompileError as error:
            trial.set_user_attr(REASON, str(error))
            raise TrialPruned from None  # a lesson on these settings, unlike a failure
        except (ReflexError, OSError) as error:
            self._ends_all = error
            raise
        except Exception as error:
            trial.set_user_attr(REASON, f"{type(error).__name__}: {error}")
            raise
        for name, value in found.attributes.items():
            trial.set_user_attr(name, value)
        self._say(f"{run}: {found.score:.3f}, {found.tokens_per_call:.0f} tokens a call")
        return found.score, found.tokens_per_call

    def _known(self, trial: Trial) -> Found | None:
        """What the same choices came to before: a compile is a pure function of them."""
        for other in in_state(self._study.get_trials(deepcopy=False), TrialState.COMPLETE):
            if other.params == trial.params:
                kept = {name: value for name, value in other.user_attrs.items() if name not in (CLAIMED, WORKER)}
                score, tokens = other.values
                return Found(score, tokens, {**kept, "same_as": other.number})
        return None

    def _claim(self, trial: Trial) -> None:
        self._storage.record_heartbeat(trial._trial_id)  # pyright: ignore[reportPrivateUsage]
        trial.set_user_attr(CLAIMED, trial.number)
        trial.set_user_attr(WORKER, f"{socket.gethostname()}:{os.getpid()}")
        trials = self._study.get_trials(deepcopy=False)
        if not history(self._frozen()) and place(self._frozen(), trials) >= self._trials:
            trial.set_user_attr(REASON, SURPLUS)
            raise _SurplusError

    def _frozen(self) -> FrozenTrial:
        return self._study.get_trials(deepcopy=False)[self._number or 0]

    def _given_up(self) -> bool:
        return self._number is not None and self._frozen().state.is_finished()

    def _queue_again(self) -> None:
        trials = self._study.get_trials()
        if self._number is not None and not any(self._number in history(trial) for trial in trials):
            RetryHeartbeatStaleTrialCallback()(self._study, trials[self._number])


class _SurplusError(Exception):
    """A trial more than was asked for."""
