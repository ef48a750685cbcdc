"""Many questions: in order, several at a time, within a budget, and never losing what is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import BudgetError, ConfigError, ModelUnavailableError, RefusalError
from dspy_reflex.runtime.answer import Answer
from dspy_reflex.stages.asking.batch import Batch, Meter, run_batch

PRICED = "anthropic/priced"
Ask = Callable[[int], tuple[int, Answer]]


def answered(tokens: int = 1) -> Answer:
    """An answer that used some tokens."""
    return Answer({}, "", "", tokens, tokens, 0.0)


def ten_times(question: int) -> tuple[int, Answer]:
    """Answers a question."""
    return question * 10, answered()


def failing_at(number: int, error: Exception) -> Ask:
    """Answers questions until one cannot be."""

    def ask(question: int) -> tuple[int, Answer]:
        if question == number:
            raise error
        return ten_times(question)

    return ask


def batch(ask: Ask, count: int = 20, *, meter: Meter | None = None, concurrency: int = 1) -> Batch[int]:
    """The batch of the first numbers."""
    return run_batch(range(count), ask, meter=meter or Meter("offline/1", None), concurrency=concurrency)


@pytest.fixture
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of which a million tokens cost a million dollars, in and out."""
    path = tmp_path / "prices.toml"
    path.write_text(f'[usd_per_million_tokens]\n"{PRICED}" = {{ input = 1e6, output = 1e6 }}\n', encoding="utf-8")
    monkeypatch.setenv("REFLEX_PRICES", str(path))


@settings(max_examples=20)
@given(st.integers(0, 30), st.integers(1, 8))
def test_results_come_in_the_order_of_the_questions(count: int, concurrency: int) -> None:
    def ask(question: int) -> tuple[int, Answer]:
        time.sleep(0.001 * (question % 3 == 0))
        return ten_times(question)

    found = batch(ask, count, concurrency=concurrency)
    assert found.done == tuple(number * 10 for number in range(count))
    assert (found.left, found.stopped, found.calls) == (0, "", count)
    assert (found.input_tokens, found.output_tokens, found.cost_usd) == (count, count, 0.0)


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_as_many_questions_as_allowed_are_asked_at_a_time(concurrency: int) -> None:
    """They meet at a barrier, which lets nobody through alone; a second counter says there were never more."""
    barrier, lock, now, most = threading.Barrier(concurrency), threading.Lock(), [0], [0]

    def ask(question: int) -> tuple[int, Answer]:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        barrier.wait(timeout=10)
        with lock:
            now[0] -= 1
        return ten_times(question)

    assert len(batch(ask, 4 * concurrency, concurrency=concurrency).done) == 4 * concurrency
    assert most[0] == concurrency


@pytest.mark.parametrize("concurrency", [1, 4])
def test_only_a_few_questions_are_asked_ahead_of_the_results(concurrency: int) -> None:
    """A batch of millions is not put into memory at once."""
    gate, asked = threading.Event(), list[int]()

    def ask(question: int) -> tuple[int, Answer]:
        asked.append(question)
        if question == 0:
            gate.wait(timeout=0.05)
        return ten_times(question)

    seen = list[int]()
    run_batch(
        range(1000), ask, meter=Meter("offline/1", None), concurrency=concurrency,
        tick=lambda done: seen.append(len(asked) - done),
    )  # fmt: skip
    assert max(seen) <= concurrency + 1


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("at", [0, 7, 19])
def test_an_outage_keeps_what_is_done_and_says_what_is_left(at: int, concurrency: int) -> None:
    found = batch(failing_at(at, ModelUnavailableError("the model is down")), concurrency=concurrency)
    assert found.done[:at] == tuple(number * 10 for number in range(at))
    assert found.done == tuple(sorted(found.done))
    assert found.left == 20 - len(found.done) > 0
    assert found.stopped == "the model is down"


def test_an_outage_ends_the_asking() -> None:
    asked = list[int]()

    def ask(question: int) -> tuple[int, Answer]:
        asked.append(question)
        return failing_at(3, ModelUnavailableError("down"))(question)

    batch(ask, 1000, concurrency=4)
    assert len(asked) <= 3 + 2 * 4 + 2


def test_progress_is_told_as_it_comes() -> None:
    ticks = list[int]()
    run_batch(range(5), ten_times, meter=Meter("offline/1", None), concurrency=2, tick=ticks.append)
    assert ticks == [1, 2, 3, 4, 5]


def test_another_error_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        batch(lambda question: ten_times(1 // question))


def test_a_refusal_goes_to_the_caller() -> None:
    with pytest.raises(RefusalError):
        batch(failing_at(3, RefusalError("no rule")))


@pytest.mark.usefixtures("prices")
def test_the_budget_stops_before_the_next_question() -> None:
    """Two dollars an answer, seven to spend: the fourth answer is the last one."""
    found = batch(ten_times, meter=Meter(PRICED, 7.0))
    assert (found.done, found.left, found.calls, found.cost_usd) == ((0, 10, 20, 30), 16, 4, 8.0)
    assert found.stopped == "the budget of 7.0 USD is spent (8.0000 USD); raise --max-usd to go on"


@pytest.mark.usefixtures("prices")
@pytest.mark.parametrize("concurrency", [2, 8])
def test_several_at_a_time_overspend_by_no_more_than_those_under_way(concurrency: int) -> None:
    def slow(question: int) -> tuple[int, Answer]:
        time.sleep(0.002)
        return ten_times(question)

    found = batch(slow, 100, meter=Meter(PRICED, 20.0), concurrency=concurrency)
    assert found.cost_usd is not None
    assert 20.0 <= found.cost_usd <= 20.0 + 2.0 * concurrency
    assert found.done == tuple(number * 10 for number in range(len(found.done)))
    assert found.left == 100 - len(found.done)


@pytest.mark.usefixtures("prices")
@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_was_paid_for_is_kept(concurrency: int) -> None:
    """An answer that came in while its neighbour failed was paid for, too."""

    def ask(question: int) -> tuple[int, Answer]:
        if question == 2:
            time.sleep(0.05)
            raise ModelUnavailableError("down")
        return ten_times(question)

    found = batch(ask, 20, meter=Meter(PRICED, None), concurrency=concurrency)
    assert len(found.done) == found.calls


@pytest.mark.usefixtures("prices")
def test_without_money_nothing_is_asked() -> None:
    found = batch(ten_times, meter=Meter(PRICED, 0.0))
    assert (found.done, found.left, found.calls) == ((), 20, 0)
    assert "the budget of 0.0 USD is spent" in found.stopped


def test_a_budget_without_a_price_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="the price of openai/nobody-knows is not known"):
        Meter("openai/nobody-knows", 1.0)
    assert Meter("openai/nobody-knows", None).usd is None
    assert Meter("offline/1", 1.0).usd == 0.0


def test_a_meter_counts_from_several_threads() -> None:
    meter = Meter("offline/1", None)
    threads = [threading.Thread(target=lambda: [meter.count(answered(2)) for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (meter.calls, meter.input_tokens, meter.output_tokens) == (4_000, 8_000, 8_000)
    meter.check()


def test_a_meter_prices_what_a_cache_had_and_what_a_batch_costs() -> None:
    """As the table has it: 4, 0.2 and 5 dollars a million tokens in, 20 out."""
    answer = Answer({}, "", "", 1_000_000, 0, 0.0, cache_read_tokens=500_000, cache_write_tokens=400_000)
    for half_price, usd in ((False, 2.5), (True, 1.25)):
        meter = Meter("anthropic/claude-opus-5-5", None, half_price=half_price)
        meter.count(answer)
        assert meter.usd == pytest.approx(usd)


@pytest.mark.usefixtures("prices")
def test_a_spent_meter_says_so() -> None:
    meter = Meter(PRICED, 2.0)
    meter.check()
    meter.count(answered())
    with pytest.raises(BudgetError, match="raise --max-usd"):
        meter.check()


def test_an_interrupted_batch_keeps_what_is_done() -> None:
    """Ctrl-C is no reason to throw away what was paid for."""

    def ask(question: int) -> tuple[int, Answer]:
        if question == 3:
            raise KeyboardInterrupt
        return ten_times(question)

    found = batch(ask)
    assert (found.done[:3], found.answered[:3], found.stopped) == ((0, 10, 20), (0, 1, 2), "interrupted")
    assert 3 not in found.answered
    assert found.left == 20 - len(found.done)


@pytest.mark.parametrize("limit", [float("nan"), float("inf")])
def test_a_budget_that_is_no_amount_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match="no amount of money"):
        Meter("offline/1", limit)
