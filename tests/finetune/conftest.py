"""One kind of store will do: that both answer alike is what the store's own tests show. Eval sets are read once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dspy_reflex.finetune.guard import Guard
from dspy_reflex.stages.export import guard_for
from dspy_reflex.store.store import Store


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with nothing in it; only to be copied."""
    file = tmp_path_factory.mktemp("store") / "store.db"
    with Store(f"sqlite:///{file}") as store, store.write():
        pass
    return file


@pytest.fixture
def url(empty: Path, tmp_path: Path) -> str:
    """An empty store of one's own."""
    return f"sqlite:///{shutil.copy(empty, tmp_path / 'store.db')}"


@pytest.fixture(scope="session")
def bundled() -> Guard:
    """Knows the bundled eval set."""
    return guard_for([])
