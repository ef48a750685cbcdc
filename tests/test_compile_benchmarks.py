"""The parts of the benchmarks against stock DSPy that take no time: what is counted, what is heard, what is compared."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

dspy = pytest.importorskip("dspy")

from benchmarks import compile_cost, compile_speed  # noqa: E402
from benchmarks.model_server import Counts, ModelServer, Server  # noqa: E402
from benchmarks.rivals import Outcome, Scored, Watch  # noqa: E402
from dspy_reflex.runtime.lm import offline  # noqa: E402
from dspy_reflex.runtime.lm.model import Message  # noqa: E402
from dspy_reflex.runtime.lm.openai_compatible import OpenAICompatible  # noqa: E402

CHAT: list[Message] = [
    {"role": "system", "content": "Your output fields are:\n1. `label` (Literal['a', 'b']):\n"},
    {"role": "user", "content": "[[ ## text ## ]]\nWhich?"},
]
GOLD = {"r1": "a", "r2": "a", "r3": "b", "r4": "b"}


@pytest.fixture
def server() -> Generator[ModelServer]:
    """The server, in this process."""
    running = Server()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield ModelServer(f"http://127.0.0.1:{running.server_port}")
    running.shutdown()
    running.server_close()
    thread.join()


def asked(server: ModelServer, side: str, latency_s: float = 0.0) -> str:
    return OpenAICompatible("openai/gpt-4o-mini", url=server.url(side, latency_s), attempts=1).complete(CHAT).text


def test_the_server_answers_as_the_offline_learner_and_counts_by_side(server: ModelServer) -> None:
    """What one side asks is not on the other one's bill, and both are told the same."""
    told = offline.answer(CHAT)
    assert [asked(server, "one"), asked(server, "one"), asked(server, "other")] == [told] * 3
    tokens = sum(len(message["content"]) for message in CHAT) // offline.CHARS_PER_TOKEN
    assert server.counts("one") == Counts(2, 2 * tokens, 2 * (len(told) // offline.CHARS_PER_TOKEN))
    assert server.counts("other").calls == 1
    assert server.counts("nobody") == Counts()


def test_an_answer_takes_as_long_as_it_was_asked_to(server: ModelServer) -> None:
    """The latency holds whether the answer is worked out or known."""
    started = time.monotonic()
    asked(server, "slow", 0.1)
    asked(server, "slow", 0.1)
    assert time.monotonic() - started >= 0.2


class Says(dspy.Module):
    """A program that always says the same, without a model."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.predict = dspy.Predict(dspy.Signature("text -> root_cause", f"Say {label}."))
        self.label = label

    def forward(self, **_: str) -> Any:
        return dspy.Prediction(root_cause=self.label)


def examples(*rows: str) -> list[Any]:
    return [dspy.Example(text=row, root_cause=GOLD[row], dspy_row=row).with_inputs("text") for row in rows]


def evaluated(program: Any, *rows: str) -> None:
    def metric(example: Any, prediction: Any, trace: Any = None) -> float:
        return float(example.root_cause == prediction.root_cause)

    dspy.Evaluate(devset=examples(*rows), metric=metric, num_threads=1)(program)


def test_a_program_is_scored_when_all_of_val_was_asked_and_no_sooner() -> None:
    """Block by block or at once, once or twice: the first time that all its rows are known counts."""
    spent = iter(Counts(calls) for calls in (4, 8))
    watch = Watch(GOLD, lambda: next(spent))
    with dspy.context(callbacks=[watch]):
        evaluated(Says("a"), "r1", "r2")
        assert not watch.scored
        evaluated(Says("a"), "r3", "r4")
        evaluated(Says("b"), *GOLD)
        evaluated(Says("a"), *GOLD)
    first, second = watch.scored.values()
    assert (first.score, first.spent.calls) == (0.5, 4)
    assert first.macro_f1 == pytest.approx(1 / 3)
    assert second.spent.calls == 8
    assert watch.score_of(Says("b")) is second


def test_phases_add_up_to_the_whole_and_nothing_counts_twice() -> None:
    """Demos worked out at the same time take as long as the longest of them."""
    watch = Watch({}, Counts)
    watch.started = time.monotonic() - 10.0
    watch.spans.update(bootstrap=[(0.0, 2.0), (1.0, 3.0)], evaluate=[(5.0, 9.0)])
    watch.score_of = lambda program: scored(0.5, 1)
    found = watch.outcome(None).phases
    assert (found["bootstrap"], found["evaluate"]) == (3.0, 4.0)
    assert found["propose"] == pytest.approx(3.0, abs=0.5)


def scored(score: float, calls: int) -> Scored:
    return Scored(None, score, score, Counts(calls, 10 * calls), 0.1 * calls)


def outcome(*points: tuple[float, int], calls: int) -> Outcome:
    found = [scored(*point) for point in points]
    return Outcome(None, max(found, key=lambda one: one.score), found, Counts(calls, 10 * calls), 0.1 * calls, {})


THEIRS = outcome((0.3, 50), (0.6, 400), calls=500)
QUICK = outcome((0.3, 50), (0.6, 200), (0.5, 300), calls=400)
NEVER = outcome((0.3, 50), (0.5, 300), calls=400)


def test_the_cost_of_being_as_good_is_that_of_the_first_program_that_is() -> None:
    """Against all that stock DSPy has used in the end; what comes later does not matter."""
    (seed,) = compile_cost.compared({7: (THEIRS, QUICK)})["seeds"]
    assert seed["reached"] == {"calls": 200, "tokens": 2000}
    assert seed["ratio"] == {"calls": 0.4, "tokens": 0.4}
    assert seed["whole_ratio"] == {"calls": 0.8, "tokens": 0.8}


def test_a_seed_that_never_gets_there_counts_as_infinite() -> None:
    """One among three moves the median; two make it infinite, and the report says so."""
    one = compile_cost.compared({0: (THEIRS, QUICK), 1: (THEIRS, NEVER), 2: (THEIRS, THEIRS)})
    assert (one["ratio"]["calls"], one["never_reached"]) == (0.8, 1)
    two = compile_cost.compared({0: (THEIRS, QUICK), 1: (THEIRS, NEVER), 2: (THEIRS, NEVER)})
    assert (two["ratio"]["calls"], two["never_reached"]) == (None, 2)
    assert "took more than all of its calls" in compile_cost.render(two)
    assert "| 1 | 0.600 | 500 | 0.0 | 0.500 | 400 | 0.0 | never |" in compile_cost.render(two)


def test_the_middle_curve_begins_where_most_seeds_have_a_score() -> None:
    """It takes each seed's best so far."""
    curves = [[(1.0, 0.3), (5.0, 0.2)], [(2.0, 0.4)], [(3.0, 0.5), (4.0, 0.6)]]
    assert compile_cost.middle_curve(curves) == [(2.0, 0.3), (3.0, 0.4), (4.0, 0.4), (5.0, 0.4)]


def test_the_speed_report_says_the_ratio_and_the_quality() -> None:
    """Late answers are told, whichever side they hit."""
    side = {"seconds": 10.0, "phases": dict.fromkeys(compile_speed.PHASES, 2.5), "calls": 100, "score": 0.6}
    told = {"stock": {**side, "late": 2, "macro_f1": 0.59}, "ours": {**side, "late": 1, "macro_f1": 0.58}}
    ratios = {"ratio": 0.5, "ratios": [0.4, 0.5, 0.7]}
    said = compile_speed.render({"latency_s": 0.2, "threads": 8, "seeds": [0, 1, 2], **ratios, **told})
    assert "Ours took 0.50 of the time of stock DSPy (0.40 to 0.70)" in said
    assert "3 of them came later" in said
    assert "| dspy\\_reflex | 10.0 |" in said or "| dspy_reflex | 10.0 |" in said
