"""One kind of store will do: that both answer alike is what the store's own tests show."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store that is not there yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"
