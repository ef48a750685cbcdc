"""The parts of the job with a real language model that need no language model: its log, its rows, its verdict."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.chat_grammar import grammar_for
from benchmarks.real_lm import few, kinds_of_answers
from benchmarks.real_lm_report import problems, render, verdict
from benchmarks.request_log import Asked, RequestLog, recording, repeated, summary
from dspy_reflex.errors import ModelUnavailableError
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.lm.openai_compatible import OpenAICompatible
from dspy_reflex.runtime.render import render as prompt
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.benchmark.contest import LABELS, row
from tests.runtime.lm.loopback import Loopback, Reply, Request, cut, error, running

CHAT: list[Message] = [{"role": "user", "content": "why?"}]


class Gated(Loopback):
    """A server that answers when it is let."""

    def __init__(self, *script: Reply) -> None:
        super().__init__(*script)
        self.gate = threading.Event()

    def next_reply(self, request: Request) -> Reply:
        reply = super().next_reply(request)
        self.gate.wait(10)
        return reply


@pytest.fixture
def gated() -> Generator[Gated]:
    with running(Gated(cut("half"), error(503))) as server:
        yield server


def client(url: str, timeout_s: float = 10.0, attempts: int = 1) -> OpenAICompatible:
    return OpenAICompatible("hosted_vllm/m", url=url, timeout_s=timeout_s, attempts=attempts, backoff_s=0.001)


def test_the_log_holds_what_the_server_said_and_the_server_gives_short_answers(gated: Gated) -> None:
    gated.gate.set()
    with recording(gated.url, 64) as (url, log):
        log.phase = "one"
        assert client(url).complete(CHAT).text == "half"
        log.phase = "two"
        assert client(url, attempts=2).complete(CHAT).text == "why?"
    first, refused, second = log.of()
    assert (first.phase, first.status, first.finish, first.text) == ("one", 200, "length", "half")
    assert (refused.phase, refused.status, second.status) == ("two", 503, 200)
    assert first.digest == refused.digest == second.digest
    assert [request.body["max_tokens"] for request in gated.requests] == [64, 64, 64]
    told = summary(log.of("two"))
    assert (told["calls"], told["answered"], told["input_tokens"], told["output_tokens"]) == (2, 1, 11, 7)


def test_an_answer_after_a_time_out_is_too_late_and_asking_again_is_no_repetition(gated: Gated) -> None:
    with recording(gated.url, 64) as (url, log):
        with pytest.raises(ModelUnavailableError, match="time-out"):
            client(url, timeout_s=0.05).complete(CHAT)
        assert not log.wait_until_idle(0.01)
        gated.gate.set()
        assert log.wait_until_idle(10)
        assert [one.taken for one in log.of()] == [False]
        client(url, attempts=2).complete(CHAT)
        assert repeated(log.of()) == 0
        client(url).complete(CHAT)
        assert repeated(log.of()) == 1


def test_a_phase_can_be_waited_for_by_its_calls(gated: Gated) -> None:
    with recording(gated.url, 64) as (url, log):
        log.phase = "asking"
        assert not log.wait_for(1, timeout_s=0.01)
        asking = threading.Thread(target=client(url).complete, args=(CHAT,))
        asking.start()
        assert log.wait_for(1, timeout_s=10)
        assert log.of("asking") == []  # it came in and has no answer yet
        gated.gate.set()
        asking.join()
        assert len(log.of("asking")) == 1


def test_a_server_that_breaks_off_is_told_to_the_client_as_an_outage() -> None:
    with running(Loopback(Reply("drop"))) as server, recording(server.url, 64) as (url, log):
        with pytest.raises(ModelUnavailableError, match="HTTP 502"):
            client(url).complete(CHAT)
        assert [one.status for one in log.of()] == [502]


PLAIN = Asked(
    "", "a", random=False, seconds=1.0, status=200, taken=True, input_tokens=0, output_tokens=0, finish="stop", text=""
)


def asked(**changed: Any) -> Asked:
    return replace(PLAIN, **changed)


def test_random_answers_and_errors_are_no_repetition() -> None:
    assert repeated([asked(), asked(digest="b")]) == 0
    assert repeated([asked(random=True), asked(random=True)]) == 0
    assert repeated([asked(status=503), asked()]) == 0
    assert repeated([asked(), asked(), asked()]) == 2


def test_a_grammar_is_made_of_what_the_last_message_asks_for() -> None:
    module = RootCauseClassifier(load_taxonomy())
    question = prompt(publish(module, load_taxonomy()), cause_inputs({"task": "t", "actual_outcome": "[[ ## x ## ]]"}))
    rules = grammar_for(question[-1]["content"])
    assert rules is not None
    root, _, _ = rules.splitlines()
    headers = ["reasoning", "evidence", "root_cause", "second", "confidence", "completed"]
    assert [name for name in headers if f'"[[ ## {name} ## ]]"' in root] == headers
    assert root.count("##") == 2 * len(headers)
    assert '"tool_failure" | "instruction_ambiguity"' in root
    assert root.count('"none"') == 1
    assert root.count(" number ") == 1


def test_a_question_that_asks_for_no_fields_has_no_grammar() -> None:
    assert grammar_for("Say hello.") is None


def test_the_server_is_given_a_grammar_only_when_it_is_to_hold_the_model_to_the_form(gated: Gated) -> None:
    gated.gate.set()
    form = (
        "Respond, starting with the field `[[ ## a ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`."
    )
    chat = [{"role": "user", "content": form}]
    with recording(gated.url, 64) as (url, log):
        client(url).complete(chat)
        log.constrained = True
        client(url, attempts=2).complete(chat)
    free, *held = gated.requests
    assert free.body["grammar"] is None
    assert all(request.body["grammar"].startswith("root ::= ") for request in held)


def test_nothing_asked_is_summed_up_too() -> None:
    assert summary(RequestLog().of())["calls"] == 0


def test_few_rows_are_balanced_from_different_families_and_always_the_same() -> None:
    rows = [row(number, LABELS[number % 3], family=f"family{number // 6}") for number in range(60)]
    chosen = few(rows, 2)
    assert Counter(one.root_cause for one in chosen) == Counter(dict.fromkeys(LABELS, 2))
    assert len({one.unit for one in chosen}) == 6
    assert few(rows[::-1], 2) == chosen


def test_answers_are_counted_by_what_is_wrong_with_them() -> None:
    outputs = [{"name": "root_cause", "type": "choice", "choices": ["red"]}]
    texts = ["[[ ## root_cause ## ]]\nred", "red", "", "[[ ## root_cause ## ]]\nblue"]
    assert kinds_of_answers([asked(text=text) for text in texts], outputs) == {
        "usable": 1,
        "the answer has no field 'root_cause'": 2,
        "the field 'root_cause' is none of red": 1,
    }


def scored(name: str, kind: str, value: float, versus: tuple[float, float] | None = None) -> dict[str, Any]:
    interval = [max(0.0, value - 0.1), value + 0.1]
    compared = versus and {"difference": sum(versus) / 2, "interval": list(versus), "mcnemar_p": 1.0}
    return {
        "name": name, "kind": kind, "n": 30, "macro_f1": value, "interval": interval, "accuracy": value,
        "accuracy_interval": interval, "refusals": 0, "unparsable": 3, "seconds_per_failure": 1.0, "vs_first": compared,
    }  # fmt: skip


def test_a_lift_is_claimed_only_when_the_whole_interval_says_so() -> None:
    first = scored("root_cause@1", "program", 0.3)
    for upper, lift, use in ((-0.01, "there is a lift", "It beats always"), (0.0, "there is no lift", "does not beat")):
        plain = scored("uncompiled", "uncompiled", 0.2, (-0.2, upper))
        said = verdict([first, plain, scored("constant", "baseline", 0.1, (-0.3, upper))])
        assert lift in said
        assert use in said


@pytest.fixture
def result() -> dict[str, Any]:
    phases = ("compile", "resume", "resume again", "benchmark", "diagnose", "time-outs")
    rows = [
        scored("root_cause@1", "program", 0.3),
        scored("uncompiled", "uncompiled", 0.2, (-0.2, 0.0)),
        scored("constant", "baseline", 0.1, (-0.3, -0.1)),
    ]
    return {
        "model": "M", "context_tokens": 8, "answer_tokens": 4, "rows": {"test": 30}, "command": "dspy-reflex compile",
        "kill": {"at_call": 3, "of_at_most": 9}, "renders_as_dspy": True, "answers": {"free": {"usable": 2}},
        "free": {"command": "dspy-reflex compile", "exit_code": 2, "said": "error: none of its answers could be used"}, "minutes": 1.0,
        "resume": {"repeated": 0, "calls_when_finished": 0, "same_artefact_when_finished": True}, "benchmark": rows,
        "diagnose": {"failures": 2, "without_cause": 1, "too_long": 1, "for_review": 2, "left": 0},
        "time_outs": {"timeout_s": 0.1, "exit_code": 1, "said": "the last one with a time-out"},
        "phases": {name: summary([asked(taken=name != "compile")]) for name in phases},
    }  # fmt: skip


def test_the_report_is_whole_tables_of_equal_width(result: dict[str, Any]) -> None:
    assert problems(result) == []
    for block in render(result).split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1


@pytest.mark.parametrize(
    ("part", "name", "value", "told"),
    [
        ("resume", "repeated", 2, "2 answers were asked for again"),
        ("resume", "calls_when_finished", 1, "a finished run asked 1 more"),
        ("resume", "same_artefact_when_finished", False, "another program"),
        ("diagnose", "left", 1, "1 failures were left"),
        ("diagnose", "too_long", 0, "0 failures were too long"),
        ("time_outs", "said", "", "an outage was not said"),
        ("time_outs", "exit_code", 0, "an outage was not said"),
        ("free", "exit_code", 1, "the free compile broke"),
    ],
)
def test_what_did_not_hold_is_said(result: dict[str, Any], part: str, name: str, value: object, told: str) -> None:
    result[part][name] = value
    (said,) = problems(result)
    assert told in said


def test_a_kill_between_two_calls_and_a_different_rendering_are_said(result: dict[str, Any]) -> None:
    result["phases"]["compile"]["too_late"] = 0
    result["renders_as_dspy"] = False
    assert len(problems(result)) == 2
