"""Batches that are waited for in milliseconds."""

from __future__ import annotations

import pytest

from dspy_reflex.runtime.lm.batches import run


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic")
    for name in ("FIRST_POLL_S", "LONGEST_POLL_S", "LOOK_AFTER_S"):
        monkeypatch.setattr(run, name, 0.001)
