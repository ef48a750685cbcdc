"""Compiled programs, each made once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dspy_reflex.optimize.api import compile_program
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.library import find
from dspy_reflex.runtime.lm.offline import MODEL
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.runtime.programs import published

ROOT = Path(__file__).parents[2]
FAILURES, PROGRAMS = ROOT / "datasets" / "failures", ROOT / "programs"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory, quiet_environment: None) -> Mapping[str, Artifact]:
    """One of every kind: the bundled ones, with their cues, demos alone, and the bare guide."""
    folder = tmp_path_factory.mktemp("compiled")

    def make(program: str, optimizer: str) -> Artifact:
        run = folder / f"{program}-{optimizer}"
        return compile_program(program, FAILURES, optimizer=optimizer, out=folder, run=run).artifact

    return {
        "cause": find("root_cause", MODEL, [PROGRAMS]),
        "cause by demos": make("root_cause", "labeled_few_shot"),
        "cause by guide": published("root_cause", load_taxonomy()),
        "rule": find("rule", MODEL, [PROGRAMS]),
        "rule by demos": make("rule", "labeled_few_shot"),
        "rule by guide": published("rule", load_taxonomy()),
    }


@pytest.fixture(scope="session")
def cause(compiled: Mapping[str, Artifact]) -> Artifact:
    """The root-cause program."""
    return compiled["cause"]


@pytest.fixture(scope="session")
def rule(compiled: Mapping[str, Artifact]) -> Artifact:
    """The rule program."""
    return compiled["rule"]
