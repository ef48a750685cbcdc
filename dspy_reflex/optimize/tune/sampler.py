"""Which settings a trial tries: first every optimizer as it is, then a few at random, then near those that did well."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from dspy_reflex.optimize.tune.space import Space
from dspy_reflex.optimize.tune.trials import place

RANDOM_SHARE = 6
"""One trial in so many is drawn at random before the search starts, and never less than `LEAST_RANDOM`."""
LEAST_RANDOM = 2
TRIES = 20
"""Searched draws for settings that were not tried yet, and as many at random if those were all tried: a compile is a pure
function of its settings, so the same again would teach nothing."""

Choices = Mapping[str, Any]


class SettingsSampler(BaseSampler):
    """Optuna's multivariate TPE, told where to begin and not to draw the same twice.

    Options that only one optimizer has are searched in a group of their own. A trial's luck hangs on its number and not on
    the worker that runs it: two workers never draw the same, and one worker alone draws the same study again.
    """

    def __init__(self, space: Space, trials: int, seed: int) -> None:
        """Draw from `space`; `trials` is the size of the whole study."""
        self._space, self._firsts = space, space.firsts()
        self._startup = len(self._firsts) + max(LEAST_RANDOM, trials // RANDOM_SHARE)
        self._seed = seed
        self._drawn: Choices = {}
        self._tpe = TPESampler()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Called by Optuna when a trial starts."""
        trials = study.get_trials(deepcopy=False)
        number = place(trial, trials)
        known = [each.params for each in trials if each.number != trial.number]
        for attempt in range(2 * TRIES):
            luck = self._seed + trial.number * 2 * TRIES + attempt
            if number < len(self._firsts):
                self._drawn = self._firsts[number]
                return
            searched = number >= self._startup and attempt < TRIES
            self._drawn = self._search(study, trial, luck) if searched else self._space.draw(random.Random(luck))
            if self._drawn not in known:
                return

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Called by Optuna for what it should have drawn together; `before_trial` has done so."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Called by Optuna to draw together."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Called by Optuna for each choice; one that no trial with a score has had yet is drawn alone."""
        if param_name in self._drawn:
            return self._drawn[param_name]
        return self._tpe.sample_independent(study, trial, param_name, param_distribution)

    def _search(self, study: Study, trial: FrozenTrial, luck: int) -> Choices:
        self._tpe = TPESampler(n_startup_trials=1, multivariate=True, group=True, constant_liar=True, seed=luck)
        together = self._tpe.infer_relative_search_space(study, trial)
        return self._space.relevant(self._tpe.sample_relative(study, trial, together))
