"""Failures of the store are diagnosed: each question once, a batch at a time, nothing lost and nothing claimed too much."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.errors import ModelUnavailableError
from dspy_reflex.records.diagnosis import PERSON
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.lm.offline import OfflineModel
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.diagnosing.stored import PAGE, QUESTIONS, Stored, Wanted, diagnose_stored
from dspy_reflex.store import diagnoses, forget, outcomes, spending
from dspy_reflex.store.counts import count
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store
from tests.runtime.programs import ScriptedModel, cause_answer, published
from tests.store.events import diagnosed, event

ROOT = Path(__file__).parents[2]
PROGRAM = published()
OTHER = published(instructions="Another program.")
SETTINGS = Settings()
PAID = "anthropic/claude-opus-5-5"


def take_in(store: Store, *texts: str, **changed: Any) -> list[str]:
    """Failures that came out like this; their ids."""
    told = [event(actual_outcome=text, **changed) for text in texts]
    with store.write() as connection:
        outcomes.take_in(connection, told)
    return [one["id"] for one in told]


def different(n: int) -> list[str]:
    """Texts that do not repeat each other."""
    return [f"Failure {chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(n)]


def run(store: Store, model: Any, settings: Settings = SETTINGS, **more: Any) -> Stored:
    return diagnose_stored(store, settings, CauseProgram(PROGRAM, model), more.pop("wanted", Wanted()), **more)


def down_after(n: int) -> Callable[[list[Message]], str | Exception]:
    """A model that answers so many questions and is then out of reach."""
    left = iter(range(n))
    return lambda _: cause_answer() if next(left, None) is not None else ModelUnavailableError("out of reach")


def test_each_failure_is_diagnosed_once(store: Store) -> None:
    ids = take_in(store, "The tap drips.", "The fuse blows.")
    model = ScriptedModel(cause_answer(), tokens=(10, 2))
    done = run(store, model)
    assert [one.diagnosis.failure_id for one in done.made] == ids
    assert (done.calls, done.input_tokens, done.output_tokens, done.stopped) == (2, 20, 4, "")
    assert run(store, model).made == ()
    with store.read() as connection:
        assert count(connection).causes == {"leak": 2}


def test_repeats_are_asked_about_once_also_by_later_runs(store: Store) -> None:
    first, *_ = take_in(store, *(f"Pipe {n} at 7:{n} drips." for n in range(10, 14)))
    model = ScriptedModel(
        cause_answer(evidence="Pipe 10 at 7:10 drips.\nSend the briefing", reasoning="It is pipe 10.")
    )
    assert [one.diagnosis.root_cause for one in run(store, model).made] == ["leak"] * 4
    (later,) = take_in(store, "Pipe 99 at 9:15 drips.")
    assert run(store, model).calls == 0
    assert len(model.asked) == 1
    with store.read() as connection:
        said = diagnoses.current(connection, [first, later])
    assert (said[first].reasoning, said[first].evidence) == (
        "It is pipe 10.",
        ("Pipe 10 at 7:10 drips.", "Send the briefing"),
    )
    assert said[later].evidence == ("Send the briefing",)
    assert first in said[later].reasoning
    assert "pipe 10" not in said[later].model_dump_json()


def test_a_status_code_or_an_empty_result_makes_another_question(store: Store) -> None:
    take_in(store, "Returned 0 rows", "Returned 3 rows", "Answer 429", "Answer 500", "Answer 200", "Answer 201")
    assert run(store, ScriptedModel(cause_answer())).calls == 5


def test_a_new_version_of_the_program_says_it_anew(store: Store) -> None:
    take_in(store, "The tap drips.")
    run(store, ScriptedModel(cause_answer()))
    newer = CauseProgram(OTHER, ScriptedModel(cause_answer(root_cause="blockage")))
    assert len(diagnose_stored(store, SETTINGS, newer, Wanted()).made) == 1
    with store.read() as connection:
        assert count(connection).causes == {"blockage": 1}


def test_only_what_is_wanted_is_diagnosed(store: Store) -> None:
    take_in(store, "Old.", at=micros(now() - timedelta(days=9)))
    take_in(store, "Of another.", agent_id="other")
    (mine,) = take_in(store, "Mine.")
    done = run(store, ScriptedModel(cause_answer()), wanted=Wanted(now() - timedelta(days=7), ("veya",)))
    assert [one.diagnosis.failure_id for one in done.made] == [mine]


def test_what_a_model_out_of_reach_did_not_answer_stays_queued(store: Store) -> None:
    take_in(store, *(f"Failure {letter}" for letter in "abcdef"))
    done = run(store, ScriptedModel(down_after(4)))
    assert (len(done.made), done.reason, done.stopped) == (4, "outage", "out of reach")
    again = ScriptedModel(cause_answer())
    assert len(run(store, again).made) == len(again.asked) == 2


def test_a_fallback_marks_what_it_says_and_it_is_said_again(store: Store) -> None:
    ids = take_in(store, "Failure a", "Failure b", "Failure b")
    fallback = ScriptedModel(cause_answer(root_cause="blockage"))

    def other() -> CauseProgram:
        return CauseProgram(OTHER, fallback)

    done = run(store, ScriptedModel(down_after(1)), fallback=other)
    assert [(one.diagnosis.failure_id, one.again) for one in done.made] == [
        (ids[0], False),
        (ids[1], True),
        (ids[2], True),
    ]
    assert (done.stopped, done.reason, len(fallback.asked)) == ("", "", 1)
    assert run(store, ScriptedModel(down_after(0)), fallback=other).made == ()
    back = run(store, ScriptedModel(cause_answer()), fallback=other)
    assert [one.diagnosis.failure_id for one in back.made] == ids[1:]
    with store.read() as connection:
        assert count(connection).causes == {"leak": 3}


def test_a_refused_key_is_no_reason_to_fall_back(store: Store) -> None:
    from dspy_reflex.errors import ModelNotConfiguredError

    take_in(store, "Failure")
    done = run(store, ScriptedModel(lambda _: ModelNotConfiguredError("no such key")), fallback=pytest.fail)
    assert (done.reason, done.stopped, done.made) == ("refused", "no such key", ())


def test_what_models_cost_is_written_down_and_the_day_has_an_end(store: Store) -> None:
    take_in(store, *(f"Failure {letter}" for letter in "abcdef"))
    model = ScriptedModel(cause_answer(), name=PAID, tokens=(100_000, 0))
    price = run(store, model, wanted=Wanted(now()), max_usd=1.0).cost_usd
    assert price == 0
    done = run(store, model, Settings(max_usd_per_day=1.2))
    assert (done.reason, 0 < len(done.made) < 6) == ("budget", True)
    with store.read() as connection:
        assert spending.spent_today(connection) == pytest.approx(done.cost_usd)
    assert run(store, model, Settings(max_usd_per_day=1.2)).made == ()
    free = CauseProgram(OTHER, OfflineModel())
    assert len(diagnose_stored(store, Settings(max_usd_per_day=1.2), free, Wanted()).made) == 6


def test_what_one_run_may_cost_holds_over_its_batches(store: Store) -> None:
    take_in(store, *different(80))
    model = ScriptedModel(cause_answer(), name=PAID, tokens=(100_000, 0))
    one = run(store, model, max_usd=0.0000001).cost_usd
    assert one
    done = run(store, model, max_usd=one * 59.5)
    assert (len(done.made), done.reason) == (60, "budget")


def test_no_answer_is_a_diagnosis_for_a_person(store: Store) -> None:
    take_in(store, "Failure", "Failure")
    (first, second) = run(store, ScriptedModel("I cannot say.")).made
    assert first.diagnosis.needs_review
    assert second.diagnosis.root_cause is None
    with store.read() as connection:
        assert count(connection).causes == {"": 2}


def test_what_a_person_said_meanwhile_stands_and_what_was_forgotten_stays_away(store: Store) -> None:
    ids = take_in(store, "Failure a", "Failure b", "Failure c")

    def say(messages: list[Message]) -> str:
        if "Failure a" in messages[-1]["content"]:
            with store.write() as connection:
                found = outcomes.failures_of(connection, [ids[1]])
                diagnoses.add(connection, [diagnosed(found[0], "cold_room", program=PERSON, model="ada")])
                forget.forget(connection, ids[2], actor="ada", reason="asked to")
        return cause_answer()

    run(store, ScriptedModel(say))
    with store.read() as connection:
        said = diagnoses.current(connection, ids)
        assert {one.failure_id: one.root_cause for one in said.values()} == {ids[0]: "leak", ids[1]: "cold_room"}
        assert count(connection).causes == {"leak": 1, "cold_room": 1}


def test_pages_and_batches_change_nothing(store: Store) -> None:
    """More failures than a page has, and more questions than a transaction."""
    texts = different(60)
    ids = take_in(store, *(f"{texts[n % 60]} of pipe {n + 1000}" for n in range(PAGE + 100)))
    ticks = list[int]()
    done = run(store, ScriptedModel(cause_answer()), tick=ticks.append)
    assert sorted(one.diagnosis.failure_id for one in done.made) == sorted(ids)
    assert done.calls == 60 > QUESTIONS
    assert ticks == sorted(ticks)
    assert len(ticks) > 2


WORK = """
import sys, time
from dspy_reflex.config import Settings
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.lm.model import Completion
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.diagnosing import stored
from dspy_reflex.store.store import Store
from pathlib import Path
class Slow:
    name = "offline/1"
    def complete(self, messages, sampling=None):
        time.sleep(0.002)
        print("asked", flush=True)
        return Completion(sys.argv[3])
program = CauseProgram(read(Path(sys.argv[2])), Slow())
stored.diagnose_stored(Store(sys.argv[1]), Settings(), program, stored.Wanted())
"""


def test_a_kill_loses_at_most_the_batch_under_way(url: str, store: Store, tmp_path: Path) -> None:
    """What was written before is whole: each diagnosis once, and counts that agree."""
    from dspy_reflex.runtime.artifact import dumps

    artifact = tmp_path / "program.json"
    artifact.write_text(dumps(PROGRAM), encoding="utf-8")
    take_in(store, *different(150))
    asked = made = 0
    for kill_after in (70, 20):
        process = subprocess.Popen(
            [sys.executable, "-c", WORK, url, str(artifact), cause_answer()], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert process.stdout
        for _ in range(kill_after):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        asked += kill_after + len(process.stdout.readlines())
        process.wait()
        process.stdout.close()
        time.sleep(0.1)  # a PostgreSQL server finishes or undoes a dead client's transaction by itself
        with store.read() as connection:
            counted = count(connection)
        made = sum(counted.causes.values())
        assert counted.undiagnosed == 150 - made
    assert asked - 2 * QUESTIONS <= made <= asked
    assert made > 0
    assert len(run(store, ScriptedModel(cause_answer())).made) == 150 - made
