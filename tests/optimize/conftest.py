"""What the tests of the compile wing share: DSPy, rows, and compiles made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dspy_reflex.optimize import compile as compiling
from dspy_reflex.optimize.compile import CompileResult
from tests.optimize.compiles import mid_set, quick, small_set


@pytest.fixture(autouse=True, scope="package")
def without_pictures() -> Iterator[None]:
    """Drawing what a run came to takes longer than most runs here; `tests/runs` and the command's tests do it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "write_run_report", lambda _: None)
        yield


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small set."""
    return small_set(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompileResult:
    """A part of the eval set, compiled as `make demo` does, with fewer trials."""
    rows = mid_set(tmp_path_factory.mktemp("data") / "mid")
    place = tmp_path_factory.mktemp("compiled")
    return quick(place, rows, optimizer="miprov2", candidates=3, trials=4, target_precision=0.5)


@pytest.fixture(scope="session")
def compiled_rule(small: Path, tmp_path_factory: pytest.TempPathFactory) -> CompileResult:
    """Rules, compiled on the small set."""
    return quick(tmp_path_factory.mktemp("compiled-rule"), small, "rule")
