"""What a study has come to: every trial accounted for, and the front of those that no other one beats in both respects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from dspy_reflex.optimize.tune.trials import CONFIG, REASON, SURPLUS, WORKER, history

State = Literal["complete", "pruned", "failed", "retried", "surplus", "running", "waiting"]
"""As Optuna has them, but for two: a failed trial that was run again, and one more than was asked for."""
STATES: Mapping[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}
DIED = "its worker died, or could not go on"


@dataclass(frozen=True)
class Tried:
    """One trial of a study."""

    number: int
    state: State
    again: int | None
    """The trial that this one runs again, if any."""
    choices: Mapping[str, Any]
    """What it tried, by name."""
    score: float | None
    interval: tuple[float, float] | None
    """95 %, over units."""
    uncompiled: float | None
    """Score of the uncompiled program on the same rows."""
    tokens_per_call: float | None
    calls: int | None
    """Of its compile."""
    program: str | None
    run: str | None
    same_as: int | None
    """The trial with the same choices whose outcome this one has taken over."""
    reason: str | None
    """Why there is no score."""
    worker: int | None
    """Workers are counted by their first trial."""


@dataclass(frozen=True)
class Outcome:
    """A study as it is now."""

    study: str
    planned: int
    config: Mapping[str, Any]
    tried: tuple[Tried, ...]
    front: tuple[int, ...]
    """Numbers of the trials that no other one beats in both respects, the cheapest program first."""

    @property
    def counts(self) -> dict[State, int]:
        """How many trials are in each state; all but those run again and the surplus are those that were planned."""
        found = Counter(one.state for one in self.tried)
        return {state: found[state] for state in get_args(State)}

    @property
    def best(self) -> tuple[Tried, ...]:
        """The front's trials."""
        return tuple(self.tried[number] for number in self.front)

    @property
    def workers(self) -> int:
        """How many took part."""
        return len({one.worker for one in self.tried if one.worker})

    @property
    def uncompiled(self) -> dict[str, float]:
        """What each model scores before compiling, as far as it was tried."""
        return {one.choices["lm"]: one.uncompiled for one in self.tried if one.uncompiled is not None}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "study": self.study,
            "planned": self.planned,
            "trials": self.counts,
            "front": list(self.front),
            "config": dict(self.config),
            "tried": [asdict(one) for one in self.tried],
        }


def outcome(study: Study, planned: int) -> Outcome:
    """Read a study of which so many trials were asked for."""
    trials = study.get_trials(deepcopy=False)
    retried = {number for trial in trials for number in history(trial)}
    workers = list(dict.fromkeys(trial.user_attrs[WORKER] for trial in trials if WORKER in trial.user_attrs))
    tried = tuple(_tried(trial, retried, workers) for trial in trials)
    front = [tried[trial.number] for trial in study.best_trials]
    front = sorted((one.tokens_per_call, one.number) for one in front if one.same_as is None)
    return Outcome(study.study_name, planned, study.user_attrs[CONFIG], tried, tuple(number for _, number in front))


def _tried(trial: FrozenTrial, retried: set[int], workers: Sequence[str]) -> Tried:
    told, state = trial.user_attrs, _state(trial, retried)
    score, tokens = trial.values or (None, None)
    return Tried(
        number=trial.number,
        state=state,
        again=next(iter(history(trial)), None),
        choices=trial.params,
        score=score,
        interval=told.get("interval"),
        uncompiled=told.get("uncompiled"),
        tokens_per_call=tokens,
        calls=told.get("calls"),
        program=told.get("program"),
        run=told.get("run"),
        same_as=told.get("same_as"),
        reason=told.get(REASON) or (DIED if state in ("failed", "retried") else None),
        worker=workers.index(told[WORKER]) + 1 if WORKER in told else None,
    )


def _state(trial: FrozenTrial, retried: set[int]) -> State:
    if trial.state != TrialState.FAIL:
        return STATES[trial.state]
    if trial.user_attrs.get(REASON) == SURPLUS:
        return "surplus"
    return "retried" if trial.number in retried else "failed"
