"""What the tests of the compile wing share: DSPy, rows, and compiles made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.optimize.compile import CompileResult
from tests.optimize.compiles import FAILURES, quick, small_set


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small set."""
    return small_set(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompileResult:
    """The whole eval set, compiled as `make demo` does, with fewer trials."""
    return quick(tmp_path_factory.mktemp("compiled"), FAILURES, optimizer="miprov2", max_demos=16, trials=6)


@pytest.fixture(scope="session")
def compiled_rule(small: Path, tmp_path_factory: pytest.TempPathFactory) -> CompileResult:
    """Rules, compiled on the small set."""
    return quick(tmp_path_factory.mktemp("compiled-rule"), small, "rule")
