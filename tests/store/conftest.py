"""A store of each kind, for the one suite that both must pass."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from dspy_reflex.store.store import Store
from tests import postgres


@pytest.fixture(scope="session")
def postgresql() -> Generator[str]:
    """A server for all tests; each takes a database of its own."""
    pytest.importorskip("psycopg")
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return postgres.database(request.getfixturevalue("postgresql"))


@pytest.fixture
def store(url: str) -> Generator[Store]:
    """An empty store."""
    with Store(url) as opened:
        yield opened
