"""A compile spends what it may and no more; what it has by then is kept, marked, and gone on with."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import answers_in
from dspy_reflex.errors import BudgetError, ConfigError, ModelUnavailableError
from dspy_reflex.optimize.compile import resume_compile
from dspy_reflex.optimize.models import journaled
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.journal import FILE
from dspy_reflex.optimize.options import CompileResult
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.library import current
from dspy_reflex.runtime.lm.prices import cost_usd
from dspy_reflex.runtime.program import load_program
from tests.optimize.compiles import files_below, quick, take, write_rows
from tests.optimize.thinking import WEAK, Think, Thinking, learns, pointed_at, wise
from tests.runtime.lm.loopback import Reply, Request, answer, error, refusal

Serve = Callable[..., Thinking]
Wholes = Callable[[str], CompileResult]
SEARCH, DEFAULT = "bootstrap_random_search", "miprov2"
SITTINGS = [(SEARCH, 1), (SEARCH, 8), (DEFAULT, 8)]
"""Optimizer and threads of what holds whatever is searched."""
PRICE = cost_usd(WEAK, 11, 7) or 0.0
"""Of one call, as the server counts its tokens."""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows to learn from, twelve to choose on."""
    folder = tmp_path_factory.mktemp("tiny")
    write_rows(folder / "train.jsonl", take(0, 2))
    write_rows(folder / "val.jsonl", take(2, 4))
    return folder


@pytest.fixture(scope="module")
def wholes(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Wholes:
    """An optimizer's search without a limit; the same only once."""

    @cache
    def make(name: str) -> CompileResult:
        with pytest.MonkeyPatch.context() as patch, pointed_at(patch) as start:
            start(wise)
            return quick(tmp_path_factory.mktemp(name), tiny, optimizer=name, lm=WEAK)

    return make


@pytest.fixture(scope="module")
def whole(wholes: Wholes) -> CompileResult:
    """The simplest search without a limit."""
    return wholes(SEARCH)


def slowly(think: Think, wait_s: float = 0.01) -> Think:
    """The same, after a while."""

    def one(request: Request) -> Reply:
        time.sleep(wait_s)
        return think(request)

    return one


def limited(place: Path, rows: Path, threads: int, name: str = SEARCH, **limits: Any) -> CompileResult:
    """A search within a budget."""
    return quick(place, rows, optimizer=name, lm=WEAK, threads=threads, budget=Budget(**limits))


def check_partial(result: CompileResult, place: Path) -> None:
    """It is a program like any other, marked, in the library and not current; it loads, and answers."""
    assert result.partial
    answered = load_program("root_cause", path=result.path)({"task": "Pay.", "actual_outcome": "HTTP 503"})
    assert answered.program == result.artifact.name
    assert answered.root_cause in result.artifact.labels
    assert read(result.path) == result.artifact
    assert result.artifact.data["partial"] is True
    assert current(place / "out", "root_cause") == {}
    assert any("partial" in line and "not made current" in line for line in result.warnings)
    assert json.loads((place / "run" / "result.json").read_text(encoding="utf-8"))["partial"] == result.partial
    assert result.scores["n"] == 12


@pytest.mark.parametrize(("name", "threads"), SITTINGS)
def test_calls_stop_at_the_limit_and_the_run_goes_on_with_a_higher_one(
    name: str, threads: int, wholes: Wholes, tiny: Path, serve: Serve, tmp_path: Path
) -> None:
    """To the very artefact of a run without a limit, and what was paid for is not paid for again."""
    whole = wholes(name)
    server, limit = serve(slowly(wise)), whole.calls - 10
    result = limited(tmp_path, tiny, threads, name, max_calls=limit)
    assert len(server.requests) == result.calls == answers_in(tmp_path / "run" / FILE) == limit
    check_partial(result, tmp_path)
    assert result.partial == f"the budget of {limit} calls (--max-calls) is spent; raise it to go on"
    assert 0 < sum(row["rows"] == 12 for row in result.candidates) < len(whole.candidates)
    again = resume_compile(tmp_path / "run", out=tmp_path / "out", limits={"max_calls": 9999})
    assert again.partial is None
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert again.candidates == whole.candidates
    assert len(server.requests) == again.calls == whole.calls
    assert current(tmp_path / "out", "root_cause") == {WEAK: again.artifact.version}


@pytest.mark.parametrize("threads", [1, 8])
def test_a_partial_run_resumed_with_its_own_limit_stays_partial(
    threads: int, whole: CompileResult, tiny: Path, serve: Serve, tmp_path: Path
) -> None:
    """With one thread it asks nothing; a thread that is ahead of others that still read asks one question at most."""
    server, limit = serve(slowly(wise)), whole.calls - 20
    first = limited(tmp_path, tiny, threads, max_calls=limit)
    again = resume_compile(tmp_path / "run", out=tmp_path / "out")
    assert again.partial == first.partial
    assert limit <= len(server.requests) <= limit + threads - 1


@pytest.mark.parametrize(("name", "threads"), SITTINGS)
@pytest.mark.parametrize("limit", ["max_tokens", "max_usd"])
def test_tokens_and_money_stop_within_one_call(
    limit: str, name: str, threads: int, wholes: Wholes, tiny: Path, serve: Serve, tmp_path: Path
) -> None:
    """Whatever questions on their way were expected to take."""
    whole = wholes(name)
    server, calls = serve(slowly(wise)), whole.calls - 10
    unit = 18 if limit == "max_tokens" else PRICE
    result = limited(tmp_path, tiny, threads, name, **{limit: (calls - 0.5) * unit})
    assert len(server.requests) == result.calls == calls
    check_partial(result, tmp_path)
    assert f"--{limit.replace('_', '-')}" in str(result.partial)
    again = resume_compile(tmp_path / "run", out=tmp_path / "out", limits={limit: 9999})
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert len(server.requests) == whole.calls


@pytest.mark.parametrize("threads", [1, 8])
def test_a_budget_that_is_spent_before_there_is_a_candidate_is_an_error_and_the_run_goes_on(
    threads: int, whole: CompileResult, tiny: Path, serve: Serve, tmp_path: Path
) -> None:
    """While measuring, while bootstrapping, and in the middle of the first candidate."""
    server = serve(slowly(wise))
    for number, limit in enumerate((5, 15, 30)):
        place = tmp_path / str(number)
        with pytest.raises(BudgetError, match=rf"budget of {limit} calls \(--max-calls\) is spent; raise it"):
            limited(place, tiny, threads, max_calls=limit)
        assert len(server.requests) == answers_in(place / "run" / FILE) == limit
        assert not (place / "out").exists()
        assert not (place / "run" / "result.json").exists()
        again = resume_compile(place / "run", out=place / "out", limits={"max_calls": 9999})
        assert again.path.read_bytes() == whole.path.read_bytes()
        assert len(server.requests) == whole.calls
        server.requests.clear()


def timed(place: Path, rows: Path, threads: int, name: str, limit_s: float) -> list[CompileResult | None]:
    """What each sitting came to, up to the one that finished; None for one without a candidate."""
    ended: list[CompileResult | None] = []
    while not ended or ended[-1] is None or ended[-1].partial:
        assert len(ended) < 20
        try:
            first = not ended
            ended.append(
                limited(place, rows, threads, name, max_time_s=limit_s)
                if first
                else resume_compile(place / "run", out=place / "out")
            )
        except BudgetError as error:
            assert "--max-time" in str(error)  # noqa: PT017
            ended.append(None)
        if ended[-1] and ended[-1].partial:
            check_partial(ended[-1], place)
    return ended


@pytest.mark.parametrize(("name", "threads"), [(SEARCH, 1), (DEFAULT, 1), (SEARCH, 8)])
def test_time_stops_it_too_and_each_sitting_has_its_own(
    name: str, threads: int, wholes: Wholes, tiny: Path, serve: Serve, tmp_path: Path
) -> None:
    """It goes on from sitting to sitting until it is done. The last answers take more time than a sitting has."""
    whole, turn = wholes(name), iter(range(10_000))
    server = serve(lambda request: slowly(wise, 0.15 * threads * (next(turn) > whole.calls - 10))(request))
    *stopped, finished = timed(tmp_path, tiny, threads, name, 1.2)
    assert stopped
    assert threads > 1 or any(stopped)
    assert finished
    assert finished.path.read_bytes() == whole.path.read_bytes()
    assert len(server.requests) == whole.calls


def test_money_without_a_price_is_said_before_any_is_spent(tiny: Path, serve: Serve, tmp_path: Path) -> None:
    """One sentence; not even a run folder."""
    server = serve(wise, "openai/nobody-knows")
    with pytest.raises(ConfigError, match="price of openai/nobody-knows is not known"):
        quick(tmp_path, tiny, lm="openai/nobody-knows", budget=Budget(max_usd=1.0))
    with pytest.raises(ConfigError, match="price of openai/nobody-knows is not known"):
        quick(tmp_path, tiny, teacher_lm="openai/nobody-knows", budget=Budget(max_usd=1.0))
    assert server.requests == []
    assert files_below(tmp_path) == []


def test_a_learning_curve_that_was_not_finished_is_none_of_the_result(tiny: Path, serve: Serve, tmp_path: Path) -> None:
    """A point of a search that was ended early would be told as one that was not."""
    server = serve(wise)
    curved = quick(tmp_path / "whole", tiny, optimizer=SEARCH, lm=WEAK, learning_curve=True)
    points = curved.told["learning_curve"]
    assert [point["rows"] for point in points] == [2, 3, 6, 12]
    server.requests.clear()
    place, budget = tmp_path / "limited", Budget(max_calls=curved.calls - 5)
    result = quick(place, tiny, optimizer=SEARCH, lm=WEAK, learning_curve=True, budget=budget)
    assert result.partial
    assert result.told["learning_curve"] is None
    again = resume_compile(place / "run", out=place / "out", limits={"max_calls": 9999})
    assert again.told["learning_curve"] == points
    assert len(server.requests) == curved.calls


@pytest.mark.parametrize(("name", "threads"), SITTINGS)
def test_a_storm_of_errors_changes_nothing(
    name: str, threads: int, wholes: Wholes, tiny: Path, serve: Serve, tmp_path: Path
) -> None:
    """Three of ten requests fail: no score is another one, every answer is counted once, and nothing was given up."""
    whole = wholes(name)
    rng, lock, answered = random.Random(5), threading.Lock(), list[str]()

    def think(request: Request) -> Reply:
        with lock:
            if rng.random() < 0.3:
                return error(529, retry_after="0.01")
            answered.append(json.dumps(request.body))
        return wise(request)

    server = serve(think)
    result = limited(tmp_path, tiny, threads, name)
    assert result.path.read_bytes() == whole.path.read_bytes()
    assert (result.scores, result.candidates) == (whole.scores, whole.candidates)
    assert result.ledger["phases"] == whole.ledger["phases"]
    assert len(answered) == len(set(answered)) == result.calls < len(server.requests) * 0.85
    assert result.ledger["given_up"] == 0


@pytest.mark.parametrize("allowed", [2, 0])
def test_so_many_calls_may_be_given_up(
    allowed: int, whole: CompileResult, tiny: Path, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are asked again; with none allowed the first one ends it, and it can be gone on with."""
    monkeypatch.setattr(journaled, "ATTEMPTS", 2)
    lock, count = threading.Lock(), iter(range(10_000))

    def think(request: Request) -> Reply:
        with lock:
            number = next(count)
        return error(529, retry_after="0.001") if number in (30, 31, 40, 41) else wise(request)

    serve(think)
    if allowed:
        result = limited(tmp_path, tiny, 1, max_errors=allowed)
        assert result.ledger["given_up"] == 2
    else:
        with pytest.raises(ModelUnavailableError):
            limited(tmp_path, tiny, 1, max_errors=allowed)
        result = resume_compile(tmp_path / "run", out=tmp_path / "out", limits={"max_errors": 1})
        assert result.ledger["given_up"] == 1
    assert result.path.read_bytes() == whole.path.read_bytes()


def test_refusals_and_unreadable_answers_are_counted_apart(tiny: Path, serve: Serve, tmp_path: Path) -> None:
    """By phase, each once however often it is read, and the same with eight threads."""
    refused, unread = list[str](), list[str]()

    def think(request: Request) -> Reply:
        text = request.body["messages"][-1]["content"]
        kind = len(text) % 4
        if kind > 1:
            return learns(request)
        (refused if kind else unread).append(json.dumps(request.body))
        return refusal() if kind else answer("It was the weather.")

    serve(think)
    found: list[Any] = []
    for threads in (1, 8):
        refused.clear()
        unread.clear()
        result = limited(tmp_path / str(threads), tiny, threads)
        phases = result.ledger["phases"]
        assert sum(phase["refusals"] for phase in phases.values()) == len(refused) > 5
        searched = sum(phases[name]["unusable"] for name in ("bootstrap", "evaluate"))
        assert 0 < searched <= len(unread)
        found.append(phases)
    assert found[0] == found[1]
