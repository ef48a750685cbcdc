"""What the tests of `tune` share: silence, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from dspy_reflex.optimize.tune.study import quiet
from tests import postgres
from tests.optimize.tune.studies import OPENED


@pytest.fixture(autouse=True)
def quiet_optuna() -> Generator[None]:
    """As `tune` has it; and what was opened is closed."""
    with quiet():
        yield
        while OPENED:
            OPENED.pop().close()


@pytest.fixture(scope="session")
def postgresql() -> Generator[str]:
    """A server for all tests; each takes a database of its own."""
    pytest.importorskip("psycopg")
    with postgres.server() as url:
        yield url


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """An empty journal file."""
    return f"journal:{tmp_path / 'a.journal'}"


@pytest.fixture(params=["journal", "sqlite"])
def storage(request: pytest.FixtureRequest, journal: str, tmp_path: Path) -> str:
    """An empty storage of each kind that needs no server."""
    return journal if request.param == "journal" else f"sqlite:///{tmp_path / 'a.db'}"
