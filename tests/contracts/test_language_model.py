"""What every `LanguageModel` must do, run on each of them.

The first suite runs on all, the offline model too; the second on those behind a network, against a real server.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import pytest

from dspy_reflex.errors import ModelError, ModelNotConfiguredError, ModelUnavailableError
from dspy_reflex.runtime.lm.model import Completion, LanguageModel, Message
from dspy_reflex.runtime.lm.openai_compatible import OpenAICompatible
from tests.runtime.lm.loopback import (
    KEY,
    Loopback,
    Reply,
    Run,
    answer,
    cut,
    drop,
    error,
    garbage,
    loopback,
    refusal,
    run_async,
    run_sync,
    slow,
    torn,
)

REMOTE = ["anthropic/claude-test", "openai/gpt-4o-mini", "openai/o3", "ollama_chat/llama3.2", "hosted_vllm/org/model"]


def remote(name: str, server: Loopback, **options: Any) -> LanguageModel:
    """Return the client of that name, pointed at the server."""
    if name.startswith("anthropic/"):
        pytest.importorskip("anthropic")
        from dspy_reflex.runtime.lm.claude import Claude

        return Claude(name, url=server.url, key=KEY, **options)
    return OpenAICompatible(name, url=server.url, key=KEY, backoff_s=0.001, **options)


@contextmanager
def any_model(name: str) -> Generator[LanguageModel]:
    """Return a model that answers, remote or offline."""
    if name == "offline/1":
        offline = pytest.importorskip("dspy_reflex.runtime.lm.offline")
        if not hasattr(offline, "OfflineModel"):
            pytest.skip("OfflineModel is not written yet")
        yield offline.OfflineModel()
        return
    with loopback() as server:
        yield remote(name, server)


def chat(text: str = "hello") -> list[Message]:
    """Return a chat with every role."""
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first question"},
        {"role": "assistant", "content": "first answer"},
        {"role": "user", "content": text},
    ]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Either way of calling a model."""
    return run_async if request.param == "async" else run_sync


# Every model


@pytest.mark.parametrize("name", [*REMOTE, "offline/1"])
def test_sync_and_async_answer_alike(name: str) -> None:
    """Twice each, and the chat is left as it was."""
    messages = chat()
    with any_model(name) as model:
        completions = [model.complete(messages), run_async(model, messages), model.complete(messages)]
        assert model.name == name
    assert completions[0] == completions[1] == completions[2]
    assert messages == chat()


@pytest.mark.parametrize("name", [*REMOTE, "offline/1"])
def test_eight_threads_may_share_a_model(name: str) -> None:
    """Each gets the answer to its own question, sync and async mixed."""
    chats = [chat(f"question {number}") for number in range(64)]
    with any_model(name) as model, ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(way, model, each) for way, each in zip(cycle([run_sync, run_async]), chats, strict=False)
        ]
        together = [future.result() for future in futures]
        alone = [model.complete(messages) for messages in chats]
    assert together == alone


@pytest.mark.parametrize("name", [*REMOTE, "offline/1"])
def test_many_tasks_of_one_loop_may_share_a_model(name: str) -> None:
    """64 chats at once in one event loop."""

    async def all_at_once(model: LanguageModel) -> list[Completion]:
        return await asyncio.gather(*(model.acomplete(chat(f"question {number}")) for number in range(64)))

    with any_model(name) as model:
        together = asyncio.run(all_at_once(model))
        assert together == [model.complete(chat(f"question {number}")) for number in range(64)]


# Models behind a network


@pytest.mark.parametrize("name", REMOTE)
def test_the_order_of_the_messages_is_kept(name: str, run: Run) -> None:
    """The system text first or apart, the others as given."""
    with loopback() as server:
        run(remote(name, server), chat())
    body = server.requests[0].body
    system = [{"role": "system", "content": body["system"]}] if "system" in body else []
    assert system + body["messages"] == chat()


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(
    ("reply", "completion"),
    [
        (answer("fine"), Completion("fine", "stop", 11, 7)),
        (cut("half an"), Completion("half an", "length", 11, 7)),
        (refusal("No."), Completion("No.", "refusal", 11, 7)),
    ],
)
def test_an_answer_says_why_it_ended_and_what_it_took(
    name: str, reply: Reply, completion: Completion, run: Run
) -> None:
    """Done, cut or refused; one request each, never retried."""
    with loopback(reply) as server:
        assert run(remote(name, server), chat()) == completion
    assert len(server.requests) == 1


PASSING = {
    "408": error(408),
    "409": error(409),
    "429": error(429),
    "429 with Retry-After": error(429, retry_after="0.01"),
    "500": error(500),
    "503": error(503),
    "529": error(529),
    "a page": garbage(),
    "half of a JSON": garbage('{"id": "chatcm'),
    "a JSON of something else": garbage('{"hello": "world"}'),
    "half of the bytes": torn(),
    "no bytes": drop(),
}


@pytest.mark.parametrize("name", ["anthropic/claude-test", "hosted_vllm/org/model"])
@pytest.mark.parametrize("what", PASSING)
def test_what_may_pass_is_retried_until_it_has_passed(name: str, what: str, run: Run) -> None:
    """One failure, one more request, and the answer."""
    with loopback(PASSING[what], answer("there")) as server:
        assert run(remote(name, server, attempts=2), chat()).text == "there"
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["anthropic/claude-test", "hosted_vllm/org/model"])
@pytest.mark.parametrize("what", ["429", "529", "a page", "no bytes"])
def test_what_does_not_pass_is_an_outage_after_the_attempts(name: str, what: str, run: Run) -> None:
    """As many requests as attempts, no more."""
    with (
        loopback(*[PASSING[what]] * 5) as server,
        pytest.raises(ModelUnavailableError, match="in 2 attempts") as caught,
    ):
        run(remote(name, server, attempts=2), chat())
    assert len(server.requests) == 2
    assert f"127.0.0.1:{server.server_port}" in str(caught.value)
    assert not what.isdigit() or f"HTTP {what}" in str(caught.value)


@pytest.mark.parametrize("name", ["anthropic/claude-test", "hosted_vllm/org/model"])
def test_a_slow_answer_is_a_time_out_and_retried(name: str, run: Run) -> None:
    """The call ends within its attempts' time-outs and waits."""
    with loopback(slow(), slow()) as server, pytest.raises(ModelUnavailableError, match="a time-out"):
        run(remote(name, server, attempts=2, timeout_s=0.2), chat())
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["anthropic/claude-test", "hosted_vllm/org/model"])
def test_a_slow_answer_may_be_followed_by_a_good_one(name: str, run: Run) -> None:
    """A time-out costs one attempt."""
    with loopback(slow()) as server:
        assert run(remote(name, server, attempts=2, timeout_s=0.5), chat()).text == "hello"


@pytest.mark.parametrize("name", ["anthropic/claude-test", "hosted_vllm/org/model"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelError),
        (401, ModelNotConfiguredError),
        (403, ModelNotConfiguredError),
        (404, ModelNotConfiguredError),
        (413, ModelError),
        (422, ModelError),
    ],
)
def test_what_will_not_pass_is_said_at_once(name: str, status: int, kind: type[ModelError], run: Run) -> None:
    """One request, and the provider's own words, clipped."""
    with loopback(error(status, "the words of the provider " + "x" * 900)) as server, pytest.raises(kind) as caught:
        run(remote(name, server, attempts=4), chat())
    assert type(caught.value) is kind
    assert len(server.requests) == 1
    assert f"HTTP {status}" in str(caught.value)
    assert "the words of the provider" in str(caught.value)
    assert len(str(caught.value)) < 450


@pytest.mark.parametrize("name", ["anthropic/claude-test", "openai/gpt-4o-mini"])
@pytest.mark.parametrize("reply", [error(401, f"bad {KEY}"), error(400, f"bad {KEY}"), error(500, KEY), garbage(KEY)])
def test_a_key_that_a_server_echoes_is_in_no_traceback_and_no_log(
    name: str, reply: Reply, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is the text of the chat in the log of the retries."""
    with (
        caplog.at_level(logging.WARNING),
        loopback(*[reply] * 2) as server,
        pytest.raises(ModelError) as caught,
    ):
        run(remote(name, server, attempts=2), chat("what the agent said"))
    shown = (
        "".join(traceback.format_exception(caught.value)) + caplog.text + repr([vars(each) for each in caplog.records])
    )
    assert KEY not in shown
    assert "what the agent said" not in caplog.text + repr([vars(each) for each in caplog.records])
