"""Name the root causes of agent failures and propose rules against them. See the README for the tour.

Names are resolved on first use, so that importing the package imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dspy_reflex.api import Reflex
    from dspy_reflex.errors import ReflexError
    from dspy_reflex.optimize.api import compile_program, evaluate_program
    from dspy_reflex.optimize.modules import RootCauseClassifier, RuleProposer
    from dspy_reflex.optimize.publish import publish
    from dspy_reflex.records.diagnosis import Diagnosis
    from dspy_reflex.records.failure import Failure
    from dspy_reflex.records.proposal import Proposal
    from dspy_reflex.records.taxonomy import Taxonomy
    from dspy_reflex.runtime.program import load_program
    from dspy_reflex.taxonomies.load import load_taxonomy

__version__ = "0.1.0"

_HOMES = {
    "Diagnosis": "records.diagnosis",
    "Failure": "records.failure",
    "Proposal": "records.proposal",
    "Reflex": "api",
    "ReflexError": "errors",
    "RootCauseClassifier": "optimize.modules",
    "RuleProposer": "optimize.modules",
    "Taxonomy": "records.taxonomy",
    "compile_program": "optimize.api",
    "evaluate_program": "optimize.api",
    "load_program": "runtime.program",
    "load_taxonomy": "taxonomies.load",
    "publish": "optimize.publish",
}

__all__ = [
    "Diagnosis",
    "Failure",
    "Proposal",
    "Reflex",
    "ReflexError",
    "RootCauseClassifier",
    "RuleProposer",
    "Taxonomy",
    "compile_program",
    "evaluate_program",
    "load_program",
    "load_taxonomy",
    "publish",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOMES[name].startswith("optimize."):
        _need_compile(name)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _need_compile(what: str) -> None:
    from importlib.util import find_spec

    if find_spec("dspy") is None:
        from dspy_reflex.errors import MissingExtraError

        raise MissingExtraError(what, "compile")
