"""One bill, however many threads and copies; and no call more than it allows."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import BudgetError, ConfigError, ModelUnavailableError
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.runtime.lm.model import Completion
from dspy_reflex.runtime.lm.prices import PRICES_VARIABLE, cost_usd

MODEL = "openai/gpt-4o-mini"


def test_calls_and_tokens_are_added_by_phase_and_by_model() -> None:
    """Refusals apart; a price that is not known is None, never 0."""
    ledger = Ledger()
    ledger.add("evaluate", MODEL, Completion("a", "stop", 3, 2))
    ledger.add("evaluate", MODEL, Completion("", "refusal", 10, 1), replayed=True)
    ledger.add("propose", "openai/nobody-knows", Completion("b"))
    assert ledger.to_json() == {
        "phases": {
            "evaluate": {
                "calls": 2,
                "input_tokens": 13,
                "output_tokens": 3,
                "refusals": 1,
                "replayed": 1,
                "unusable": 0,
            },
            "propose": {"calls": 1, "input_tokens": 0, "output_tokens": 0, "refusals": 0, "replayed": 0, "unusable": 0},
        },
        "models": {
            MODEL: {"calls": 2, "input_tokens": 13, "output_tokens": 3, "usd": cost_usd(MODEL, 13, 3)},
            "openai/nobody-knows": {"calls": 1, "input_tokens": 0, "output_tokens": 0, "usd": None},
        },
        "given_up": 0,
    }
    assert (ledger.calls, ledger.tokens, ledger.replayed, ledger.usd) == (3, 16, 1, None)


def test_no_call_is_lost_between_threads_and_copies() -> None:
    """DSPy copies its models deeply; what the copies spend is on the same bill."""
    ledger = Ledger()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: deepcopy(ledger).add("bootstrap", MODEL, Completion("so", "stop", 1)), range(2_000)))
    assert (ledger.calls, ledger.tokens) == (2_000, 2_000)


def test_an_answer_is_first_once() -> None:
    """Whoever asks for it again, and from whatever thread."""
    ledger = Ledger()
    with ThreadPoolExecutor(8) as pool:
        new = list(pool.map(lambda number: ledger.first(f"key-{number % 50}"), range(1_000)))
    assert sum(new) == 50


def test_an_unusable_answer_is_counted_where_it_was_asked_for_and_once() -> None:
    """A refusal is counted as one and not twice; an answer that was read before is not counted again."""
    ledger = Ledger()
    ledger.unusable()
    for key, phase, finish in (("a", "propose", "stop"), ("b", "evaluate", "refusal"), ("c", "evaluate", "stop")):
        assert ledger.first(key)
        ledger.add(phase, MODEL, Completion("?", finish))  # pyright: ignore[reportArgumentType]
        ledger.unusable()
        ledger.unusable()
    assert not ledger.first("c")
    ledger.unusable()
    phases = ledger.to_json()["phases"]
    assert {name: (counts["unusable"], counts["refusals"]) for name, counts in phases.items()} == {
        "propose": (1, 0),
        "evaluate": (1, 1),
    }


@pytest.mark.parametrize("threads", [1, 8])
def test_calls_stop_at_the_limit_with_any_number_of_threads(threads: int) -> None:
    """Those on their way count, so no thread slips through."""
    ledger, asked = Ledger(Budget(max_calls=37)), list[int]()

    def one(number: int) -> str:
        try:
            with ledger.asking(MODEL, 10):
                asked.append(number)
                time.sleep(0.001)
                ledger.add("evaluate", MODEL, Completion("so", "stop", 10, 5))
        except BudgetError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(threads) as pool:
        told = list(pool.map(one, range(200)))
    assert (len(asked), ledger.calls) == (37, 37)
    assert {line for line in told if line} == {"the budget of 37 calls (--max-calls) is spent; raise it to go on"}


def test_tokens_and_money_stop_within_one_call() -> None:
    """The last call may go over; none is asked after it."""
    price = cost_usd(MODEL, 1_000, 100)
    assert price
    for budget in (Budget(max_tokens=5_000), Budget(max_usd=price * 4.5)):
        ledger = Ledger(budget)
        for _ in range(5):
            with ledger.asking(MODEL, 1_000):
                ledger.add("evaluate", MODEL, Completion("so", "stop", 1_000, 100))
        with pytest.raises(BudgetError), ledger.asking(MODEL, 1_000):
            pass


@pytest.mark.parametrize("used", [100, 2_000])
def test_who_finds_no_room_beside_others_waits_until_it_is_known_what_they_use(used: int) -> None:
    """They were expected to take all of it. Then there is room, or there is none."""
    ledger, told = Ledger(Budget(max_tokens=2_000)), list[str]()

    def late() -> None:
        try:
            with ledger.asking(MODEL, 1_000):
                told.append("asked")
        except BudgetError:
            told.append("no room")

    thread = threading.Thread(target=late)
    with ledger.asking(MODEL, 1_000), ledger.asking(MODEL, 1_000):
        thread.start()
        time.sleep(0.05)
        assert told == []
        ledger.add("evaluate", MODEL, Completion("so", "stop", used, 5))
    thread.join(10)
    assert told == ["asked" if used < 2_000 else "no room"]


def test_what_was_on_its_way_frees_its_room_when_it_fails() -> None:
    """An outage is not on the bill."""
    ledger = Ledger(Budget(max_calls=1))
    with pytest.raises(OSError, match="gone"), ledger.asking(MODEL, 1):
        raise OSError("gone")
    with ledger.asking(MODEL, 1):
        ledger.add("evaluate", MODEL, Completion("so"))


def test_time_stops_too() -> None:
    """It is looked at before each question."""
    ledger = Ledger(Budget(max_time_s=0.05))
    with ledger.asking(MODEL, 1):
        time.sleep(0.06)
    with pytest.raises(BudgetError, match=r"time of 0\.05 s \(--max-time\)"), ledger.asking(MODEL, 1):
        pass


def test_once_stopped_it_stays_stopped() -> None:
    """With the first reason, for everybody."""
    ledger, first = Ledger(), ModelUnavailableError("first")
    ledger.stop(first)
    ledger.stop(ModelUnavailableError("second"))
    with pytest.raises(ModelUnavailableError, match="first"), ledger.asking(MODEL, 1):
        pass


def test_closing_waits_for_what_is_on_its_way_and_lets_nobody_else_ask() -> None:
    """It is paid for; whoever is stopped already stays stopped for the first reason."""
    ledger, asked, done = Ledger(), threading.Event(), list[str]()

    def slow() -> None:
        with ledger.asking(MODEL, 1):
            asked.set()
            time.sleep(0.05)
            done.append("answered")

    thread = threading.Thread(target=slow)
    thread.start()
    assert asked.wait(10)
    ledger.close()
    assert done == ["answered"]
    with pytest.raises(BudgetError, match="over"), ledger.asking(MODEL, 1):
        pass
    thread.join()
    ledger.close()


def test_so_many_calls_may_be_given_up() -> None:
    """The next one ends it."""
    ledger, error = Ledger(Budget(max_errors=2)), ModelUnavailableError("out of reach")
    ledger.give_up(error)
    ledger.give_up(error)
    with pytest.raises(ModelUnavailableError, match="out of reach"):
        ledger.give_up(error)
    assert ledger.to_json()["given_up"] == 3


@pytest.mark.parametrize("name", ["calls", "tokens", "usd", "time"])
@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_what_is_no_limit_is_refused(name: str, limit: float) -> None:
    """By the name of the option."""
    options: dict[str, Any] = {"max_time_s" if name == "time" else f"max_{name}": limit}
    with pytest.raises(ConfigError, match=f"--max-{name}: .* is no limit"):
        Budget(**options).check([])


def test_money_cannot_be_held_without_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with the way out, which works."""
    with pytest.raises(ConfigError, match=r"price of openai/nobody-knows is not known; .*REFLEX_PRICES"):
        Budget(max_usd=1.0).check([MODEL, "offline", "openai/nobody-knows"])
    Budget(max_calls=3).check(["openai/nobody-knows"])
    prices = tmp_path / "prices.toml"
    prices.write_text('[usd_per_million_tokens]\n"openai/nobody-knows" = { input = 1, output = 2 }\n', encoding="utf-8")
    monkeypatch.setenv(PRICES_VARIABLE, str(prices))
    Budget(max_usd=1.0).check([MODEL, "openai/nobody-knows"])


def test_a_ledger_says_what_is_left() -> None:
    """For the line of progress; without a budget there is nothing to say."""
    ledger = Ledger(Budget(max_calls=3, max_tokens=100))
    ledger.add("evaluate", MODEL, Completion("so", "stop", 30, 10))
    assert ledger.left() == "2 calls left, 60 tokens left"
    assert Ledger().left() == ""


def test_threads_count_unusable_answers_apart() -> None:
    """Each thread speaks of the answer that it was given itself."""
    ledger, met = Ledger(), threading.Barrier(2)

    def one(phase: Any) -> None:
        ledger.add(phase, MODEL, Completion("?"))
        met.wait(10)
        ledger.unusable()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, ("bootstrap", "evaluate")))
    assert [counts["unusable"] for counts in ledger.to_json()["phases"].values()] == [1, 1]
