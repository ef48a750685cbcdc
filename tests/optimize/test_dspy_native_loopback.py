"""What DSPy 3.4.1's own engine does with the servers that our clients are tested on: the compile wing's way to a model.

These are facts about DSPy, kept so that an upgrade that changes one of them is seen. Where they differ from our clients
(an OpenAI refusal reads as an empty answer, a page of a proxy is not retried, an echoed key is repeated), the compile
wing must look for itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
dspy = pytest.importorskip("dspy")

from dspy.utils import exceptions  # noqa: E402

from dspy_reflex.runtime.lm.connect import PROVIDERS, endpoint  # noqa: E402
from tests.runtime.lm.loopback import (  # noqa: E402
    KEY,
    Loopback,
    Reply,
    answer,
    cut,
    drop,
    error,
    garbage,
    loopback,
    refusal,
    slow,
    torn,
)

ROOT = Path(__file__).parents[2]
NAMES = ["openai/gpt-4o-mini", "anthropic/claude-opus-4-5", "ollama_chat/llama3.2", "hosted_vllm/org/model"]
OPENAI_SHAPED = [name for name in NAMES if not name.startswith("anthropic/")]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (*provider.url_variables, provider.key_variable):
            monkeypatch.delenv(variable, raising=False)


def lm(name: str, server: Loopback, **options: Any) -> Any:
    """Return DSPy's model of that name, pointed at the server."""
    settings = {
        "api_base": server.url,
        "api_key": KEY,
        "engine": "lm15",
        "cache": False,
        "num_retries": 3,
        "timeout": 5,
    }
    return dspy.LM(name, **settings | options)


def last_response(model: Any) -> Any:
    """Return what the engine made of the last answer."""
    return model.history[-1]["response"]


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_comes_with_its_tokens(name: str) -> None:
    """The plain case, on the path that the protocol names."""
    with loopback(answer("fine")) as server:
        model = lm(name, server)
        assert model("hello") == ["fine"]
    usage = model.history[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (11, 7)
    assert server.requests[0].path == ("/v1/messages" if name.startswith("anthropic/") else "/v1/chat/completions")


@pytest.mark.parametrize("name", NAMES)
def test_429_and_529_are_retried(name: str) -> None:
    """`Retry-After` replaces the waits of 1, 2 and 4 seconds; sync and async."""
    script = [error(429, retry_after="0.01"), error(529, retry_after="0.01"), answer("there")]
    with loopback(*script, *script) as server:
        model = lm(name, server)
        assert model("hello") == ["there"]
        assert len(server.requests) == 3
        assert asyncio.run(model.acall("hello")) == ["there"]
    assert len(server.requests) == 6


@pytest.mark.parametrize("name", NAMES)
def test_an_outage_is_an_error_that_says_it_may_be_retried(name: str) -> None:
    """`num_retries` more requests, then `LMServerError`."""
    with loopback(*[error(529, retry_after="0.01")] * 9) as server, pytest.raises(exceptions.LMServerError):
        lm(name, server)("hello")
    assert len(server.requests) == 4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reply", [slow(), drop(), torn()], ids=lambda reply: reply.kind)
def test_a_broken_or_slow_connection_is_a_transport_error(name: str, reply: Reply) -> None:
    """A time-out while waiting for an answer is one too, not `LMTimeoutError`."""
    with loopback(reply) as server, pytest.raises(exceptions.LMTransportError):
        lm(name, server, num_retries=0, timeout=0.3)("hello")


@pytest.mark.parametrize("reply", [slow(), drop(), torn()], ids=lambda reply: reply.kind)
def test_a_broken_or_slow_connection_is_retried(reply: Reply) -> None:
    """After a second, for no server said how long to wait."""
    with loopback(reply) as server:
        assert lm(NAMES[0], server, num_retries=1, timeout=0.3)("hello") == ["hello"]


@pytest.mark.parametrize("name", NAMES)
def test_a_body_of_no_protocol_is_an_error(name: str) -> None:
    """Never an empty answer; but tried only once."""
    with loopback(*[garbage()] * 4) as server, pytest.raises(exceptions.LMProviderError, match="not JSON"):
        lm(name, server)("hello")
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_answer_says_so(name: str) -> None:
    """The text that came, and the finish reason "length"."""
    with loopback(cut("half an")) as server:
        model = lm(name, server)
        assert model("hello") == ["half an"]
    assert last_response(model).finish_reason == "length"


def test_a_refusal_of_claude_is_a_finish_reason() -> None:
    """The text is given as if it were an answer."""
    with loopback(refusal("No.")) as server:
        model = lm("anthropic/claude-opus-4-5", server)
        assert model("hello") == ["No."]
    assert last_response(model).finish_reason == "content_filter"


@pytest.mark.parametrize("name", OPENAI_SHAPED)
def test_a_refusal_of_openai_is_a_part_of_an_answer_that_stopped(name: str) -> None:
    """The text is None and the finish reason "stop": only the response's parts tell."""
    with loopback(refusal("No.")) as server:
        model = lm(name, server)
        assert model("hello") == [None]
    response = last_response(model)
    assert response.finish_reason == "stop"
    assert [part.type for part in response.message.parts] == ["refusal"]


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_in_no_form_asked_for_costs_a_second_call(name: str) -> None:
    """`ChatAdapter` asks again through `JSONAdapter`, then `AdapterParseError`."""
    with (
        loopback(answer("no fields here"), answer("none here either")) as server,
        dspy.context(lm=lm(name, server)),
        pytest.raises(exceptions.AdapterParseError),
    ):
        dspy.Predict("question -> label")(question="why?")
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_key_is_said_at_once_and_an_echoed_key_is_repeated(name: str) -> None:
    """DSPy does not redact what a server says: whoever stores its errors must."""
    with loopback(error(401, f"bad {KEY}")) as server, pytest.raises(exceptions.LMAuthError) as caught:
        lm(name, server)("hello")
    assert len(server.requests) == 1
    assert KEY in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_our_endpoint_is_what_dspy_wants(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting serves compiling and running, if `endpoint` is passed and the native engine asked for."""
    provider = PROVIDERS[name.partition("/")[0]]
    with loopback() as server:
        monkeypatch.setenv(provider.url_variables[0], server.url)
        monkeypatch.setenv(provider.key_variable, KEY)
        where = endpoint(name)
        model = dspy.LM(name, api_base=where.url, api_key=where.key, engine="lm15", cache=False, num_retries=0)
        assert model("hello") == ["hello"]
    assert len(server.requests) == 1


def test_the_native_engine_reads_no_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`OLLAMA_API_BASE` alone does not move it."""
    with loopback() as server:
        monkeypatch.setenv("OLLAMA_API_BASE", server.url)
        model = dspy.LM("ollama_chat/llama3.2", cache=False, num_retries=0, timeout=1)
        with pytest.raises(exceptions.LMTransportError, match="localhost:11434"):
            model("hello")
    assert server.requests == []


FALLBACK = """
import sys, dspy
lm = dspy.LM("openai/gpt-4o-mini", api_base=sys.argv[1], api_key="k", cache=False, num_retries=0, engine=sys.argv[2])
print(lm("hello"), "litellm" in sys.modules)
"""


@pytest.mark.parametrize(("engine", "litellm"), [("auto", True), ("lm15", False)])
def test_an_address_in_the_environment_sends_auto_to_litellm(engine: str, litellm: bool) -> None:
    """Even with `api_base` given: only `engine="lm15"` stays native."""
    pytest.importorskip("litellm")
    with loopback() as server:
        done = subprocess.run(
            [sys.executable, "-c", FALLBACK, server.url, engine],
            env=os.environ | {"OPENAI_BASE_URL": server.url, "LITELLM_LOCAL_MODEL_COST_MAP": "true"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.split("\n")[-2] == f"['hello'] {litellm}"
