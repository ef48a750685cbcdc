"""What a compile would cost at most, said before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import ConfigError, DatasetError
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.optimize.estimate import Estimate, estimate
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.optimize.options import CompileOptions, CompileResult
from dspy_reflex.runtime.lm.prices import cost_usd
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import CORE, FAILURES, PROGRAMS, files_below, quickly, take, ten_rows, write_rows
from tests.optimize.thinking import STRONG, WEAK, Thinking, pointed_at, says, wise

Serve = Callable[..., Thinking]
LINES = json.loads((FAILURES.parents[1] / "experiments" / "optimizers" / "result.json").read_text())["lines"]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen rows to learn from, six to choose on."""
    folder = tmp_path_factory.mktemp("tiny")
    write_rows(folder / "train.jsonl", take(0, 3))
    write_rows(folder / "val.jsonl", take(3, 4))
    return folder


def check_bounds(most: Estimate, result: CompileResult) -> None:
    """No phase takes more calls than it was said to."""
    calls = {one.phase: one.calls for one in most.phases}
    taken = {phase: counts["calls"] for phase, counts in result.ledger["phases"].items()}
    assert {phase: number for phase, number in taken.items() if number > calls[phase]} == {}
    assert result.calls <= most.calls


def compiled(options: CompileOptions, place: Path) -> CompileResult:
    """Below a folder."""
    return run_compile(options, out=place / "out", run=place / "run")


@pytest.mark.parametrize(("optimizer", "program"), [*((name, "root_cause") for name in CORE), ("miprov2", "rule")])
def test_no_compile_takes_more_calls_than_it_was_said_to(
    optimizer: str, program: str, tiny: Path, tmp_path: Path
) -> None:
    """Phase by phase; estimating writes nothing."""
    options = quickly(program, (tiny,), optimizer=optimizer)
    most = estimate(options)
    assert files_below(tmp_path) == []
    check_bounds(most, compiled(options, tmp_path))


@pytest.mark.parametrize("optimizer", [name for name in CORE if name != "labeled_few_shot"])
def test_not_even_with_a_teacher_that_is_never_right(optimizer: str, tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """It looks through every row for every demo set."""
    serve(wise)
    server = serve(lambda _: says("none of these"), STRONG)
    options = quickly("root_cause", (tiny,), optimizer=optimizer, lm=WEAK, teacher_lm=STRONG)
    most = estimate(options)
    assert server.requests == []
    check_bounds(most, compiled(options, tmp_path))
    assert len(server.requests) >= 18


@pytest.mark.parametrize("optimizer", CORE)
def test_nor_where_the_score_is_cross_validated(optimizer: str, tmp_path: Path) -> None:
    """Every fold is a compile."""
    taxonomy, rows = ten_rows(tmp_path)
    options = quickly("root_cause", (rows,), taxonomy=str(taxonomy), optimizer=optimizer, max_demos=4)
    check_bounds(estimate(options), compiled(options, tmp_path))


@pytest.mark.parametrize("further", ["learning_curve", "cross_calibrate"])
def test_nor_with_further_compiles(further: str, tiny: Path, tmp_path: Path) -> None:
    """For a learning curve, and for calibrating out of fold."""
    asked_for: dict[str, Any] = {further: True}
    options = quickly("root_cause", (tiny,), optimizer="bootstrap_random_search", **asked_for)
    check_bounds(estimate(options), compiled(options, tmp_path))


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_the_committed_runs_took_no_more_than_they_would_be_said_to(optimizer: str) -> None:
    """Tokens, too: instructions of the offline learner are soon longer than everything else in a prompt."""
    (taken,) = (one for one in LINES if one["optimizer"] == optimizer and one["model"] == "offline")
    said = estimate(CompileOptions("root_cause", (FAILURES,), load_taxonomy(), optimizer))
    assert taken["calls"] <= said.calls
    assert taken["tokens"] <= said.tokens


def test_every_phase_names_its_model_and_its_price(tiny: Path, serve: Serve) -> None:
    """Tokens are calls by what one takes; a local model costs nothing."""
    serve(wise)
    serve(wise, STRONG)
    found = estimate(quickly("root_cause", (tiny,), optimizer="miprov2", lm=WEAK, teacher_lm=STRONG))
    models = {one.phase: one.model for one in found.phases}
    assert models == {"bootstrap": STRONG, "propose": WEAK, "evaluate": WEAK, "measure": WEAK}
    by_phase = {one.phase: one for one in found.phases}
    assert by_phase["bootstrap"].usd == 0
    one = by_phase["evaluate"]
    assert one.usd == cost_usd(WEAK, one.input_tokens, one.output_tokens)
    assert found.usd == pytest.approx(sum(phase.usd or 0 for phase in found.phases))
    assert found.calls == sum(phase.calls for phase in found.phases)
    assert found.to_json()["phases"][2] == {
        "phase": "evaluate", "model": WEAK, "calls": one.calls, "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens, "usd": one.usd,
    }  # fmt: skip
    assert found.lines()[0].endswith("USD; nothing was asked")


def test_nobody_is_asked(tiny: Path, serve: Serve, tmp_path: Path) -> None:
    """Not even for a key."""
    server = serve(wise)
    estimate(quickly("root_cause", (tiny,), optimizer="miprov2", lm=WEAK))
    assert server.requests == []
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY")
        estimate(quickly("root_cause", (tiny,), optimizer="miprov2", lm=WEAK))
    assert files_below(tmp_path) == []


def test_a_price_that_is_not_known_is_no_price(tiny: Path) -> None:
    """It is not told as 0."""
    found = estimate(quickly("root_cause", (tiny,), lm="openai/nobody-knows"))
    assert found.usd is None
    assert "price not known" in found.lines()[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_tokens_are_near_what_a_compile_takes(program: str, tiny: Path, tmp_path: Path) -> None:
    """The offline learner counts four characters as a token, as the estimate does."""
    options = quickly(program, (tiny,), optimizer="labeled_few_shot")
    most, result = estimate(options), compiled(options, tmp_path)
    taken = result.ledger["phases"]["measure"]["input_tokens"]
    said = next(one.input_tokens for one in most.phases if one.phase == "measure")
    assert 0.9 * taken < said < 2.5 * taken


def test_what_cannot_be_used_is_said_as_when_compiling(tiny: Path) -> None:
    """Options, rows and limits."""
    with pytest.raises(ConfigError, match="--max-demos: 0 is not between"):
        estimate(quickly("root_cause", (tiny,), max_demos=0))
    with pytest.raises(DatasetError, match="no such file"):
        estimate(quickly("root_cause", (tiny / "nope.jsonl",)))
    bad: Any = (("tool_failure", "bad_luck", 3.0),)
    with pytest.raises(ConfigError, match="no root cause 'bad_luck'"):
        estimate(quickly("root_cause", (tiny,), costs=bad))


def test_every_optimizer_can_be_estimated(small: Path) -> None:
    """With its defaults."""
    for name in OPTIMIZERS:
        found = estimate(quickly("root_cause", (small,), optimizer=name))
        assert found.calls >= 36
