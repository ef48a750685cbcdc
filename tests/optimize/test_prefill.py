"""A compile that asks whole val sets through batches: fewer single calls, half the price, the same program."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import BudgetError, ConfigError
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.options import CompileOptions, CompileResult
from dspy_reflex.runtime.lm import offline
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.runtime.lm.batch_server import BatchServer
from tests.runtime.lm.loopback import KEY, Reply, answer, running, text_of

MODEL = "anthropic/claude-haiku-4-5"


def wise(params: dict[str, Any]) -> Reply:
    """What the offline learner would say to the same chat."""
    chat = [{"role": one["role"], "content": text_of(one["content"])} for one in params["messages"]]
    system = params.get("system", "")
    text = system if isinstance(system, str) else "".join(block["text"] for block in system)
    return answer(offline.answer([{"role": "system", "content": text}, *chat]))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[BatchServer]:
    """Anthropic's API on loopback, with batches."""
    pytest.importorskip("anthropic")
    with running(BatchServer(wise, polls=0)) as started:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", started.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield started


def options(small: Path, **other: Any) -> CompileOptions:
    """A quick search."""
    chosen = CompileOptions("root_cause", (small,), load_taxonomy(), "bootstrap_random_search", lm=MODEL)
    return replace(chosen, settings={"max_demos": 6, "trials": 3}, **other)


def compiled(place: Path, chosen: CompileOptions) -> CompileResult:
    """A run of its own."""
    return run_compile(chosen, out=place / "out", run=place / "run")


def test_val_is_asked_in_batches_and_the_program_is_the_same(server: BatchServer, small: Path, tmp_path: Path) -> None:
    """Every val row of every candidate is in a batch; only demos are worked out one by one."""
    single = compiled(tmp_path / "single", options(small))
    calls = len(server.requests)
    server.requests.clear()
    batched = compiled(tmp_path / "batched", options(small, batch=True))
    assert batched.artifact.data["messages"] == single.artifact.data["messages"]
    assert server.submitted.total() == batched.calls - len(server.requests)
    assert set(batched.ledger["phases"]) == {"bootstrap", "evaluate", "measure"}
    assert len(server.requests) == batched.ledger["phases"]["bootstrap"]["calls"] < calls
    assert "replayed" not in {name for counts in batched.ledger["phases"].values() for name, n in counts.items() if n}


def test_a_batch_costs_half(server: BatchServer, small: Path, tmp_path: Path) -> None:
    """By the ledger, from the tokens that the server counted."""
    single = compiled(tmp_path / "single", options(small)).ledger["models"][MODEL]
    batched = compiled(tmp_path / "batched", options(small, batch=True)).ledger["models"][MODEL]
    assert 0.5 <= (batched["usd"] / batched["calls"]) / (single["usd"] / single["calls"]) < 0.75


def test_a_batch_that_the_budget_has_no_room_for_is_not_sent(server: BatchServer, small: Path, tmp_path: Path) -> None:
    """The calls are then made one by one, and stop at the limit."""
    result = compiled(tmp_path, options(small, batch=True, budget=Budget(max_calls=70)))
    assert result.partial
    assert server.submitted.total() + len(server.requests) == result.calls == 70


def test_the_first_batch_has_room_of_its_own(server: BatchServer, small: Path, tmp_path: Path) -> None:
    """What is worked out meanwhile would take it away: the uncompiled program is measured first, all of it or none."""
    for limit in (25, 30, 40):
        server.requests.clear()
        server.batches.clear()
        with pytest.raises(BudgetError, match=f"budget of {limit} calls"):
            compiled(tmp_path / str(limit), options(small, batch=True, threads=4, budget=Budget(max_calls=limit)))
        assert server.submitted.total() + len(server.requests) == limit


def test_a_model_without_batches_is_refused_before_anything_is_asked(small: Path, tmp_path: Path) -> None:
    """In one sentence."""
    with pytest.raises(ConfigError, match="offline has no batches"):
        compiled(tmp_path, replace(options(small, batch=True), lm="offline"))
    assert not (tmp_path / "run").exists()
