"""The two programs as ordinary DSPy modules: compile them with any optimizer, or build them into larger programs."""

from __future__ import annotations

from typing import Any

import dspy

from dspy_reflex.errors import ProgramError
from dspy_reflex.optimize.signatures import cause_signature, rule_signature
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.taxonomies.load import load_taxonomy


class RootCauseClassifier(dspy.Module):
    """Names the root cause of a failure.

    Inputs are the texts that `runtime.inputs.cause_inputs` makes of a failure: `task`, `expected_outcome`,
    `actual_outcome`, `context`. The prediction has `reasoning`, `evidence` (a quote a line), `root_cause`, `second` and
    `confidence` (in [0, 1]).
    """

    program = "root_cause"

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        """Make it for a taxonomy; the six causes by default."""
        super().__init__()
        self.taxonomy = taxonomy or load_taxonomy()
        self.predict = dspy.Predict(cause_signature(self.taxonomy))

    def forward(self, **inputs: str) -> Any:
        """Ask the model once."""
        return self.predict(**inputs)

    async def aforward(self, **inputs: str) -> Any:
        """The same, without blocking the event loop."""
        return await self.predict.acall(**inputs)


class RuleProposer(dspy.Module):
    """Proposes one behavioural rule for failures of one root cause.

    Inputs are the texts that `runtime.inputs.rule_inputs` makes: `failures`, `root_cause`, `existing_rules`. The
    prediction has `component`, `rule` and `rationale`.
    """

    program = "rule"

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        """Make it for a taxonomy; the six causes by default."""
        super().__init__()
        self.taxonomy = taxonomy or load_taxonomy()
        self.predict = dspy.Predict(rule_signature(self.taxonomy))

    def forward(self, **inputs: str) -> Any:
        """Ask the model once."""
        return self.predict(**inputs)

    async def aforward(self, **inputs: str) -> Any:
        """The same, without blocking the event loop."""
        return await self.predict.acall(**inputs)


PROGRAMS: dict[str, type[RootCauseClassifier] | type[RuleProposer]] = {
    module.program: module for module in (RootCauseClassifier, RuleProposer)
}
"""Every program that can be compiled, by the name the command line uses."""


def only_predictor(module: Any) -> Any:
    """The predictor of a module that has one.

    Raises:
        ProgramError: It has none, or several.
    """
    predictors = module.predictors()
    if len(predictors) != 1:
        raise ProgramError(f"a program is one predictor; this module has {len(predictors)}. Publish each by itself")
    return predictors[0]
