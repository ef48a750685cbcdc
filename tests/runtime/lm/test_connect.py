"""From names and environment variables to models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dspy_reflex.errors import ConfigError, ModelNotConfiguredError
from dspy_reflex.runtime.lm.connect import PROVIDERS, Endpoint, connect, count_tokens, endpoint
from tests.runtime.lm.batch_server import batch_server
from tests.runtime.lm.loopback import KEY, error, garbage, loopback

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (*provider.url_variables, provider.key_variable):
            monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("name", "variables", "where"),
    [
        ("openai/m", {"OPENAI_API_KEY": KEY}, Endpoint("https://api.openai.com/v1", KEY)),
        ("openai/m", {"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": "http://a/x/"}, Endpoint("http://a/x", KEY)),
        (
            "openai/m",
            {"OPENAI_API_KEY": f" {KEY}\n", "OPENAI_API_BASE": "http://a", "OPENAI_BASE_URL": "http://b"},
            Endpoint("http://b", KEY),
        ),
        ("anthropic/m", {"ANTHROPIC_API_KEY": KEY}, Endpoint("https://api.anthropic.com/v1", KEY)),
        (
            "anthropic/m",
            {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://a/v1/"},
            Endpoint("http://a/v1", KEY),
        ),
        ("ollama_chat/m", {}, Endpoint("http://localhost:11434/v1")),
        ("ollama_chat/m", {"OLLAMA_API_BASE": "http://h:1"}, Endpoint("http://h:1/v1")),
        ("hosted_vllm/m", {"HOSTED_VLLM_API_BASE": "http://h:1/v1"}, Endpoint("http://h:1/v1")),
        (
            "hosted_vllm/m",
            {"HOSTED_VLLM_API_BASE": "http://h:1", "HOSTED_VLLM_API_KEY": KEY},
            Endpoint("http://h:1/v1", KEY),
        ),
    ],
)
def test_the_environment_says_where_a_model_is(
    monkeypatch: pytest.MonkeyPatch, name: str, variables: dict[str, str], where: Endpoint
) -> None:
    """The address always reaches up to the version, with or without it in the variable."""
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert endpoint(name) == where


@pytest.mark.parametrize(
    ("name", "variables", "told"),
    [
        ("openai/m", {}, "openai/m needs a key: set OPENAI_API_KEY"),
        ("openai/m", {"OPENAI_API_KEY": " "}, "set OPENAI_API_KEY"),
        ("anthropic/m", {}, "set ANTHROPIC_API_KEY"),
        ("hosted_vllm/m", {}, "has no address: set HOSTED_VLLM_API_BASE"),
        ("ollama_chat/m", {"OLLAMA_API_BASE": "localhost:11434"}, "OLLAMA_API_BASE is not an http"),
        ("ollama_chat/m", {"OLLAMA_API_BASE": "http://me:secret@h:port"}, "OLLAMA_API_BASE is not an http"),
        ("openai/m", {"OPENAI_API_KEY": "sk-secret\nsecret"}, "OPENAI_API_KEY holds characters"),
        ("openai/m", {"OPENAI_API_KEY": "sk-secret“"}, "OPENAI_API_KEY holds characters"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, variables: dict[str, str], told: str
) -> None:
    """The message names the variable, and never shows what is in it."""
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ModelNotConfiguredError, match=told) as caught:
        connect(name)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "gpt-4o", "openai", "openai/", "bedrock/claude", "offline/2", "OPENAI/m"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    """One sentence with every prefix."""
    with pytest.raises(ModelNotConfiguredError) as caught:
        connect(name)
    assert str(caught.value) == (
        f"The model '{name}' is not known: use one of offline, offline/1, anthropic/NAME, openai/NAME, "
        "ollama_chat/NAME, hosted_vllm/NAME."
    )


@pytest.mark.parametrize("limits", [{"timeout_s": 0.0}, {"attempts": 0}, {"max_tokens": -1}])
def test_a_limit_that_allows_nothing_is_refused(limits: dict[str, int]) -> None:
    """It would fail later, and less clearly."""
    with pytest.raises(ConfigError, match="above 0"):
        connect("offline", **limits)


@pytest.mark.parametrize("name", ["anthropic/m", "openai/m", "ollama_chat/m", "hosted_vllm/m"])
def test_every_prefix_answers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From the environment to a text, with the limits that were asked for."""
    if name.startswith("anthropic"):
        pytest.importorskip("anthropic")
    provider = PROVIDERS[name.partition("/")[0]]
    with loopback() as server:
        monkeypatch.setenv(provider.url_variables[0], server.url)
        monkeypatch.setenv(provider.key_variable, KEY)
        model = connect(name, max_tokens=5)
        assert model.name == name
        assert model.complete([{"role": "user", "content": "hello"}]).text == "hello"
    assert 5 in server.requests[0].body.values()


def test_anthropic_counts_tokens_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server counts one a character; what passes is tried again."""
    pytest.importorskip("anthropic")
    with batch_server(count=[error(529), garbage()]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        messages = [{"role": "system", "content": "Be brief. " * 300}, {"role": "user", "content": "12345"}]
        assert count_tokens("anthropic/claude-test", messages) == 3_005
    assert server.verbs == ["count"] * 3


@pytest.mark.parametrize("name", ["offline", "openai/gpt-4o", "ollama_chat/llama3.2"])
def test_for_other_models_tokens_are_estimated(name: str) -> None:
    """From the length, with nobody asked and no key needed."""
    assert count_tokens(name, [{"role": "user", "content": "x" * 41}, {"role": "assistant", "content": "y" * 40}]) == 20


def test_an_endpoint_does_not_show_its_key() -> None:
    """It may end in a log."""
    assert KEY not in repr(Endpoint("http://h/v1", KEY))


def test_importing_it_imports_no_client() -> None:
    """In a fresh process: the HTTP clients come with the first model."""
    heavy = "{'httpx', 'anthropic', 'stamina'}"
    code = f"import sys, dspy_reflex.runtime.lm.connect; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
