"""Compiling on models behind a wire: who is asked what, what it costs, and what happens when nobody answers well."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from dspy_reflex.errors import CompileError, ModelNotConfiguredError, ModelUnavailableError, ReflexError
from dspy_reflex.optimize.models.journaled import ATTEMPTS
from dspy_reflex.optimize.options import CompileResult
from dspy_reflex.runtime.lm.prices import cost_usd
from tests.optimize.compiles import CORE, PROGRAMS, quick, take, write_rows
from tests.optimize.thinking import (
    STRONG,
    WEAK,
    Think,
    Thinking,
    every,
    everything,
    knows,
    learns,
    pointed_at,
    says,
    texts,
    wise,
)
from tests.runtime.lm.loopback import KEY, Reply, Request, answer, cut, error, refusal

Serve = Callable[..., Thinking]
SOON = {"retry_after": "0.01"}
"""What makes retries fast: a client waits as long as the server says."""
MARK = "Count the letters of the task."


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows to learn from, six to choose on."""
    folder = tmp_path_factory.mktemp("tiny")
    write_rows(folder / "train.jsonl", take(0, 2))
    write_rows(folder / "val.jsonl", take(2, 3))
    return folder


def bodies(server: Thinking) -> list[str]:
    """What was asked, question by question."""
    return [json.dumps(request.body, sort_keys=True) for request in server.requests]


def fails(status: int) -> Think:
    """Out of order, for ever."""
    return lambda _: error(status, **SOON)


def until(number: int, think: Think, then: Think) -> Think:
    """One way of thinking for so many requests, another one after that."""
    lock, count = threading.Lock(), iter(range(1_000_000))

    def one(request: Request) -> Reply:
        with lock:
            early = next(count) < number
        return (think if early else then)(request)

    return one


def calls(result: CompileResult, part: str) -> dict[str, int]:
    """Calls by phase or by model."""
    return {name: counts["calls"] for name, counts in result.ledger[part].items()}


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("optimizer", CORE)
def test_every_call_is_counted(optimizer: str, threads: int, tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """The ledger's calls are the server's requests, and tokens are what the server said."""
    server = serve(learns)
    result = quick(tmp_path, tiny, optimizer=optimizer, lm=WEAK, threads=threads)
    number = len(server.requests)
    assert result.calls == sum(calls(result, "phases").values()) == number
    assert sum(phase["input_tokens"] for phase in result.ledger["phases"].values()) == 11 * number
    (bill,) = result.ledger["models"].values()
    assert (bill["calls"], bill["output_tokens"]) == (number, 7 * number)
    assert bill["usd"] == pytest.approx(cost_usd(WEAK, 11 * number, 7 * number))
    assert result.artifact.model == WEAK
    assert not [body for body in bodies(server) if bodies(server).count(body) > 1]


def test_a_model_behind_a_wire_gives_the_program_that_the_same_answers_give_here(
    tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """A server that answers as the offline learner does makes the same prompt; one or eight threads."""
    serve(wise)
    here = quick(tmp_path / "here", tiny)
    there = [quick(tmp_path / str(threads), tiny, lm=WEAK, threads=threads) for threads in (1, 8)]
    assert there[0].path.read_bytes() == there[1].path.read_bytes()
    assert there[0].artifact.data["messages"] == here.artifact.data["messages"]


@pytest.mark.parametrize("optimizer", ["bootstrap_few_shot", "bootstrap_random_search", "miprov2"])
def test_the_teacher_works_out_the_demos_of_a_weaker_model(
    optimizer: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """Its right answers become demos, with its reasoning; each model is asked by its own name."""
    weak = serve(lambda request: learns(request, "Said the teacher."))
    strong = serve(lambda request: answer(knows(request).text.replace("So.", "Said the teacher.")), STRONG)
    result = quick(tmp_path, tiny, optimizer=optimizer, lm=WEAK, teacher_lm=STRONG)
    assert calls(result, "models") == {STRONG: len(strong.requests), WEAK: len(weak.requests)}
    assert calls(result, "phases")["bootstrap"] == len(strong.requests) > 0
    assert {request.body["model"] for request in strong.requests} == {"strong"}
    assert {request.body["model"] for request in weak.requests} == {"gpt-4o-mini"}
    taught = [demo for demo in result.artifact.data["demos"] if demo["bootstrapped"]]
    assert taught
    assert {demo["values"]["reasoning"] for demo in taught} == {"Said the teacher."}
    assert result.artifact.data["optimizer"]["teacher_lm"] == STRONG


def test_the_prompt_model_writes_the_instructions_and_is_asked_nothing_else(
    tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """A student that gets its answers right under those instructions alone ends up with them."""

    def writes(request: Request) -> Reply:
        asked = everything(request)
        assert "proposed_instruction" in asked or "observations" in asked or "summary" in asked or "program" in asked
        return answer(f"[[ ## proposed_instruction ## ]]\n{MARK}\n\n[[ ## completed ## ]]")

    def obeys(request: Request) -> Reply:
        return knows(request) if MARK in texts(request)[0]["content"] else says("tool_failure")

    weak, strong = serve(obeys), serve(writes, STRONG)
    result = quick(tmp_path, tiny, optimizer="miprov2", lm=WEAK, prompt_lm=STRONG, max_demos=0)
    assert calls(result, "models") == {STRONG: len(strong.requests), WEAK: len(weak.requests)}
    assert calls(result, "phases")["propose"] == len(strong.requests) > 0
    assert MARK in result.artifact.data["instructions"]
    assert MARK in result.artifact.data["messages"][0]["content"]
    assert result.artifact.data["optimizer"]["prompt_lm"] == STRONG


@pytest.mark.parametrize(("optimizer", "status"), [*((name, 529) for name in CORE), ("miprov2", 503)])
def test_an_outage_ends_the_compile_and_nothing_is_written(
    optimizer: str, status: int, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """Tried several times, never scored; one sentence that names the model."""
    server = serve(fails(status))
    with pytest.raises(ModelUnavailableError, match=WEAK) as caught:
        quick(tmp_path, tiny, optimizer=optimizer, lm=WEAK)
    assert len(str(caught.value).splitlines()) == 1
    assert len(server.requests) == ATTEMPTS
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize(("good", "threads", "program"), [(8, 1, "root_cause"), (8, 8, "rule"), (24, 8, "root_cause")])
def test_an_outage_in_the_middle_ends_it_too(
    program: str, threads: int, good: int, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """While bootstrapping, while searching, with threads."""
    serve(until(good, wise, fails(529)))
    with pytest.raises(ModelUnavailableError):
        quick(tmp_path, tiny, program, optimizer="bootstrap_random_search", lm=WEAK, threads=threads)
    assert not (tmp_path / "out").exists()


def test_an_outage_while_measuring_ends_it_too(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """Half a score is none."""
    serve(until(2, wise, fails(503)))
    with pytest.raises(ModelUnavailableError):
        quick(tmp_path, tiny, optimizer="labeled_few_shot", lm=WEAK)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("optimizer", ["bootstrap_random_search", "miprov2"])
def test_after_an_outage_nobody_is_asked_any_more(optimizer: str, tmp_path: Path, serve: Serve) -> None:
    """With eight threads at most the questions on their way are finished; a process must not hang on the others."""
    write_rows(tmp_path / "data" / "train.jsonl", take(0, 2))
    write_rows(tmp_path / "data" / "val.jsonl", take(2, 8))
    server = serve(until(8, wise, fails(503)))
    with pytest.raises(ModelUnavailableError):
        quick(tmp_path, tmp_path / "data", optimizer=optimizer, lm=WEAK, threads=8)
    time.sleep(1.0)
    assert len(server.requests) <= 8 + 8 * (ATTEMPTS)


@pytest.mark.parametrize("role", ["prompt_lm", "teacher_lm"])
def test_an_outage_of_a_helper_ends_it_too(role: str, tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """The sentence names the helper."""
    serve(wise)
    serve(fails(529), STRONG)
    with pytest.raises(ModelUnavailableError, match=STRONG):
        quick(tmp_path, tiny, optimizer="miprov2", lm=WEAK, **{role: STRONG})
    assert not (tmp_path / "out").exists()


def test_a_short_outage_is_waited_for(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """Every fifth request fails at first; the program is the one that a calm server gives."""
    serve(every(5, error(429, **SOON)))
    rough = quick(tmp_path / "rough", tiny, lm=WEAK)
    serve(wise)
    assert quick(tmp_path / "calm", tiny, lm=WEAK).path.read_bytes() == rough.path.read_bytes()


BAD = {
    "refusal": refusal(),
    "unparsable": answer("I would rather talk about the weather."),
    "no label": says("the weather"),
    "cut": cut("[[ ## reasoning ## ]]\nWell, it"),
    "empty": answer(""),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("optimizer", ["bootstrap_few_shot", "miprov2"])
def test_answers_that_cannot_be_used_are_misses(
    optimizer: str, bad: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """Two of three are; the compile goes on, counts every call, and the score shows the misses."""

    def think(request: Request) -> Reply:
        if "proposed_instruction" in everything(request) or "observations" in everything(request):
            return wise(request)
        return BAD[bad] if len(texts(request)[-1]["content"]) % 3 else wise(request)

    server = serve(think)
    try:
        result = quick(tmp_path, tiny, optimizer=optimizer, lm=WEAK, threads=2)
    except CompileError as nothing:
        assert "changed nothing" in str(nothing)  # noqa: PT017
    else:
        assert result.calls == len(server.requests)
        assert result.scores["value"] < 0.7
        counts = result.ledger["phases"].values()
        refused, unusable = (sum(phase[what] for phase in counts) for what in ("refusals", "unusable"))
        assert (refused > 0, unusable > 0) == (bad == "refusal", bad != "refusal")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("optimizer", CORE)
def test_a_model_that_never_answers_does_not_crash_a_compile(
    optimizer: str, program: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """It refuses everything, questions of the prompt model among them: a score of 0, or nothing changed, in words."""
    serve(lambda _: refusal())
    try:
        result = quick(tmp_path, tiny, program, optimizer=optimizer, lm=WEAK)
    except ReflexError as said:
        assert len(str(said).splitlines()) == 1  # noqa: PT017
        assert not (tmp_path / "out").exists()
    else:
        assert result.scores["value"] == 0


@pytest.mark.parametrize("bad", [refusal(), answer("Here you are: be careful.")], ids=["refusal", "unparsable"])
def test_a_prompt_model_that_writes_no_instructions_does_not_crash_a_compile(
    bad: Reply, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """The search goes on with the instructions there are, or stops with one sentence."""
    serve(wise)
    serve(lambda _: bad, STRONG)
    try:
        quick(tmp_path, tiny, optimizer="miprov2", lm=WEAK, prompt_lm=STRONG)
    except ReflexError as said:
        assert len(str(said).splitlines()) == 1  # noqa: PT017


@pytest.mark.parametrize("optimizer", ["labeled_few_shot", "bootstrap_few_shot"])
def test_a_wrong_key_is_said_in_one_sentence_without_the_key(
    optimizer: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """Servers echo keys. It is no outage: waiting will not help."""
    server = serve(lambda _: error(401, f"bad key {KEY}"))
    with pytest.raises(ModelNotConfiguredError) as caught:
        quick(tmp_path, tiny, optimizer=optimizer, lm=WEAK)
    assert KEY not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize("optimizer", ["labeled_few_shot", "bootstrap_few_shot"])
def test_a_request_that_a_server_will_never_take_is_no_outage(
    optimizer: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """Nothing is scored, nobody is told to try again later, and the key is not repeated."""
    serve(lambda _: error(400, f"this model has a context of 4 tokens {KEY}"))
    with pytest.raises(ReflexError) as caught:
        quick(tmp_path, tiny, optimizer=optimizer, lm=WEAK)
    assert not isinstance(caught.value, ModelUnavailableError)
    assert KEY not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["openai/gpt-5", "openai/o3", "openai/gpt-4o-mini", "ollama_chat/llama3", STRONG])
def test_models_of_every_kind_can_be_compiled_for(name: str, tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """Those that reason take other limits; the run time takes them, so the compile does."""
    server = serve(wise, name)
    assert quick(tmp_path, tiny, lm=name).calls == len(server.requests)


def test_claude_can_be_compiled_for(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """Through Anthropic's protocol on both wings."""
    pytest.importorskip("anthropic")
    server = serve(wise, "anthropic/claude-haiku-4-5")
    result = quick(tmp_path, tiny, lm="anthropic/claude-haiku-4-5")
    assert result.calls == len(server.requests)
    assert {request.path for request in server.requests} == {"/v1/messages"}


def test_a_model_that_is_not_set_up_is_said_before_a_row_is_read(tiny: Path, tmp_path: Path) -> None:
    """For each of the three roles."""
    for role in ("lm", "prompt_lm", "teacher_lm"):
        with pytest.raises(ModelNotConfiguredError, match="OPENAI_API_KEY"):
            quick(tmp_path, tiny, **{role: WEAK})
    assert not list(tmp_path.iterdir())


def test_no_key_is_written_anywhere(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """Neither in the artefact nor in the run folder."""
    serve(learns)
    result = quick(tmp_path, tiny, optimizer="miprov2", lm=WEAK)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert "127.0.0.1" not in result.path.read_text(encoding="utf-8")
    assert KEY not in json.dumps(result.to_json())
