"""From a model's name to a model that answers: which provider, which address, which key.

The variables are those that DSPy and LiteLLM know, so that one setting serves compiling and running. This module
imports no HTTP client until a model is asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dspy_reflex.errors import ConfigError, ModelNotConfiguredError
from dspy_reflex.runtime.lm.model import LanguageModel, Message

TIMEOUT_VARIABLE = "REFLEX_TIMEOUT_S"
"""Environment variable with the longest wait for a slow model, in seconds."""
OFFLINE_NAMES = ("offline", "offline/1")
"""Names of the model that needs no key, weights or network."""
CHARS_PER_TOKEN = 4
"""An estimate, for models whose provider does not count beforehand: ordinary English."""


class Provider(NamedTuple):
    """Where a provider is, and what it wants to know."""

    url_variables: tuple[str, ...]
    """Environment variables that move it; the first that is set wins."""
    default_url: str
    """Empty when a variable must be set."""
    key_variable: str
    key_required: bool
    version_path: str = ""
    """What its address always ends with, added when left out."""


PROVIDERS = {
    "anthropic": Provider(
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"), "https://api.anthropic.com", "ANTHROPIC_API_KEY", True, "/v1"
    ),
    "openai": Provider(("OPENAI_BASE_URL", "OPENAI_API_BASE"), "https://api.openai.com/v1", "OPENAI_API_KEY", True),
    "ollama_chat": Provider(("OLLAMA_API_BASE",), "http://localhost:11434", "OLLAMA_API_KEY", False, "/v1"),
    "hosted_vllm": Provider(("HOSTED_VLLM_API_BASE",), "", "HOSTED_VLLM_API_KEY", False, "/v1"),
}
"""Every provider that can be asked for, by the prefix of its models' names."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached, as both `connect` and `dspy.LM(api_base=url, api_key=key)` want it."""

    url: str
    """The address up to and with `/v1`."""
    key: str = field(default="", repr=False)
    """Empty when the provider needs none."""


def endpoint(name: str) -> Endpoint:
    """Read the address and key of a model from the environment.

    Raises:
        ModelNotConfiguredError: The prefix is not known, or a variable is missing or cannot be used.
    """
    prefix, _, model = name.partition("/")
    provider = PROVIDERS.get(prefix)
    if provider is None or not model:
        known = ", ".join([*OFFLINE_NAMES, *(f"{each}/NAME" for each in PROVIDERS)])
        raise ModelNotConfiguredError(f"The model '{name}' is not known: use one of {known}.")
    return Endpoint(_url(name, provider), _key(name, provider))


def _url(name: str, provider: Provider) -> str:
    variable = next((each for each in provider.url_variables if os.environ.get(each)), provider.url_variables[0])
    url = (os.environ.get(variable) or provider.default_url).strip().rstrip("/")
    if not url:
        raise ModelNotConfiguredError(f"The model {name} has no address: set {variable}, as http://localhost:8000/v1.")
    if not _is_http(url):  # its text stays out of the message: it may hold a password
        raise ModelNotConfiguredError(f"The model {name} cannot be reached: {variable} is not an http(s) address.")
    return url if url.endswith(provider.version_path) else f"{url}{provider.version_path}"


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _key(name: str, provider: Provider) -> str:
    key = os.environ.get(provider.key_variable, "").strip()
    if not key and provider.key_required:
        raise ModelNotConfiguredError(f"The model {name} needs a key: set {provider.key_variable}.")
    if not (key.isascii() and (key.isprintable() or not key)):  # it would fail inside an HTTP header, and be quoted
        raise ModelNotConfiguredError(f"{provider.key_variable} holds characters that no key has: copy it again.")
    return key


def _timeout_s(usual: float) -> float:
    given = os.environ.get(TIMEOUT_VARIABLE)
    try:
        return float(given) if given else usual
    except ValueError:
        raise ConfigError(f"{TIMEOUT_VARIABLE}: {given!r} is no number of seconds") from None


def connect(name: str, *, timeout_s: float = 60.0, attempts: int = 4, max_tokens: int = 1024) -> LanguageModel:
    """Return the model of that name; nothing is sent yet.

    Args:
        name: `offline`, or a prefix of `PROVIDERS` and a model, as `anthropic/claude-opus-5-5`.
        timeout_s: Longest wait for a connection, and between two bytes of an answer; `REFLEX_TIMEOUT_S`, if it is set,
            comes before it.
        attempts: How often a call is sent at most; at least 1.
        max_tokens: Longest answer; where a model reasons, its reasoning counts too.

    Raises:
        ModelNotConfiguredError: The prefix is not known, or its key or address is missing.
        MissingExtraError: `anthropic/…` without the extra [anthropic].
        ConfigError: A limit is not positive.
    """
    timeout_s = _timeout_s(timeout_s)
    if min(timeout_s, attempts, max_tokens) <= 0:
        raise ConfigError(f"timeout_s, attempts and max_tokens must be above 0: {timeout_s}, {attempts}, {max_tokens}.")
    if name in OFFLINE_NAMES:
        from dspy_reflex.runtime.lm.offline import OfflineModel

        return OfflineModel()
    where = endpoint(name)
    options: dict[str, Any] = {"url": where.url, "key": where.key, "timeout_s": timeout_s}
    options |= {"attempts": attempts, "max_tokens": max_tokens}
    if name.startswith("anthropic/"):
        from dspy_reflex.runtime.lm.claude import Claude

        return Claude(name, **options)
    from dspy_reflex.runtime.lm.openai_compatible import OpenAICompatible

    return OpenAICompatible(name, **options)


def count_tokens(name: str, messages: list[Message]) -> int:
    """Tell how many input tokens a chat is, before it is asked.

    `anthropic/…`: the provider's count, one request that costs nothing. Every other model: an estimate from its length.

    Raises:
        ModelError: Anthropic cannot be reached, or does not know the model.
    """
    if not name.startswith("anthropic/"):
        return sum(len(each["content"]) for each in messages) // CHARS_PER_TOKEN
    from dspy_reflex.runtime.lm.claude import Claude

    where = endpoint(name)
    return Claude(name, url=where.url, key=where.key).count_tokens(messages)
