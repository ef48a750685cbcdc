"""Every optimizer, one file each, behind one door. There is no silent fall-back from one to another."""

from __future__ import annotations

from dspy_reflex.errors import ConfigError
from dspy_reflex.optimize.optimizers import (
    bootstrap_few_shot,
    bootstrap_random_search,
    copro,
    gepa,
    infer_rules,
    knn_few_shot,
    labeled_few_shot,
    miprov2,
    simba,
)
from dspy_reflex.optimize.optimizers.base import Optimizer

OPTIMIZERS: dict[str, Optimizer] = {
    each.name: each
    for each in (
        labeled_few_shot.OPTIMIZER,
        bootstrap_few_shot.OPTIMIZER,
        bootstrap_random_search.OPTIMIZER,
        miprov2.OPTIMIZER,
        copro.OPTIMIZER,
        knn_few_shot.OPTIMIZER,
        simba.OPTIMIZER,
        gepa.OPTIMIZER,
        infer_rules.OPTIMIZER,
    )
}
"""By the name that the command line uses."""


def optimizer(name: str) -> Optimizer:
    """The optimizer of a name.

    Raises:
        ConfigError: There is none.
    """
    if name not in OPTIMIZERS:
        raise ConfigError(f"there is no optimizer {name!r}; choose one of {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]
