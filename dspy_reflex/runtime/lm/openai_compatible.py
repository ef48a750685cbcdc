"""Models behind the OpenAI chat-completions protocol: OpenAI itself, Ollama, vLLM and whatever speaks like them.

What may pass is retried: time-outs, broken connections, 408, 409, 429, every 5xx (529 among them), and an HTTP 200
whose body is not a chat completion. `Retry-After` is honoured up to `LONGEST_WAIT_S`. What will not pass, a bad key or
an unknown model, is raised at once.

Temperature is 0.0, unless another one is asked for, wherever the server takes one: always for `ollama_chat/` and
`hosted_vllm/`, and for OpenAI's gpt-3.5 and gpt-4 families. Other `openai/` models, the reasoning ones among them, get
none, and no seed: they refuse it.
"""

from __future__ import annotations

import time
import weakref
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import stamina

from dspy_reflex.errors import ModelError, ModelNotConfiguredError, ModelUnavailableError
from dspy_reflex.runtime.lm.model import PLAIN, TOO_LONG, Completion, Finish, Message, Sampling

LONGEST_WAIT_S = 60.0
"""The longest wait between two attempts, whatever `Retry-After` asks for."""
_PASSING_STATUSES = frozenset({408, 409, 429})
_UNCONFIGURED_STATUSES = frozenset({401, 403, 404})
_CLIP = 300
_OPENAI_WITH_TEMPERATURE = ("gpt-3.5", "gpt-4")
_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "refusal"}


def said(text: str, key: str) -> str:
    """Return what a server said as one short line that does not hold the key."""
    line = " ".join((text.replace(key, "[key]") if key else text).split())
    return line if len(line) <= _CLIP else f"{line[: _CLIP - 1]}…"


def outage(name: str, url: str, attempts: int, last: str) -> ModelUnavailableError:
    """Return the error for a model that did not answer; `last` is what the last attempt met."""
    return ModelUnavailableError(
        f"{name} at {host_of(url)} gave no usable answer in {attempts} attempt{'s' if attempts != 1 else ''}, the last"
        f" one with {last}; try again later, or look at the address and at the provider's status page."
    )


def host_of(url: str) -> str:
    """Return host and port of an address, without a user or password in it."""
    return urlsplit(url).netloc.rpartition("@")[2]


def retry_after_s(header: str | None) -> float | None:
    """Read `Retry-After`, seconds or an HTTP date, into seconds in [0, LONGEST_WAIT_S]; None when there is none."""
    for read in (float, _seconds_until):
        with suppress(ValueError, OverflowError):
            return min(max(0.0, read(header or "")), LONGEST_WAIT_S)
    return None


def _seconds_until(http_date: str) -> float:
    return parsedate_to_datetime(http_date).timestamp() - time.time()


def read_completion(body: Any) -> Completion:
    """Read the decoded body of a chat completion; a LookupError, TypeError or AttributeError says it is none."""
    choice = body["choices"][0]
    message = choice["message"]
    refusal, text = message.get("refusal"), message.get("content")
    usage: dict[str, Any] = body.get("usage") or {}
    if not isinstance(text := refusal or text or "", str):
        raise TypeError("content is not text")
    return Completion(
        text=text,
        finish="refusal" if refusal else _FINISH.get(str(choice.get("finish_reason")), "stop"),
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _settings(name: str, max_tokens: int) -> dict[str, Any]:
    provider, _, model = name.partition("/")
    limit = "max_completion_tokens" if provider == "openai" else "max_tokens"
    settings: dict[str, Any] = {"model": model, limit: max_tokens}
    if provider != "openai" or model.startswith(_OPENAI_WITH_TEMPERATURE):
        settings["temperature"] = 0.0
    return settings


class _PassingError(Exception):
    """One attempt failed in a way that may pass."""

    def __init__(self, what: str, wait_s: float | None = None) -> None:
        super().__init__(what)
        self.wait_s = wait_s


def _wait(error: Exception) -> bool | float:
    """Tell stamina whether to try again, and after how many seconds if the server said so."""
    if not isinstance(error, _PassingError):
        return False
    return True if error.wait_s is None else error.wait_s


class OpenAICompatible:
    """A `LanguageModel` over HTTP. Safe to share between threads and event loops; connections close with it."""

    def __init__(
        self,
        name: str,
        *,
        url: str,
        key: str = "",
        timeout_s: float = 60.0,
        attempts: int = 4,
        max_tokens: int = 1024,
        backoff_s: float = 1.0,
    ) -> None:
        """Prepare the clients; nothing is sent.

        Args:
            name: Provider and model, as `ollama_chat/llama3.2`.
            url: The address up to and with `/v1`.
            key: Sent as bearer token; empty sends none.
            timeout_s: Longest wait for a connection, and between two bytes of an answer.
            attempts: How often a call is sent at most; at least 1.
            max_tokens: Longest answer; for reasoning models their reasoning counts too.
            backoff_s: First wait between attempts; it doubles, with as much jitter, up to `LONGEST_WAIT_S`.
        """
        self.name = name
        self._url, self._key, self._attempts = f"{url.rstrip('/')}/chat/completions", key, attempts
        self._settings = _settings(name, max_tokens)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(timeout_s, pool=None)
        verify = httpx.create_ssl_context()
        self._async_options: dict[str, Any] = {"headers": headers, "timeout": timeout, "verify": verify}
        self._client = httpx.Client(headers=headers, timeout=timeout, verify=verify)
        weakref.finalize(self, self._client.close)
        waits = {"wait_initial": backoff_s, "wait_jitter": backoff_s, "wait_max": LONGEST_WAIT_S}
        self._retry = stamina.RetryingCaller(attempts=attempts, timeout=None, **waits).on(_wait)
        self._aretry = stamina.AsyncRetryingCaller(attempts=attempts, timeout=None, **waits).on(_wait)

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat.

        Raises:
            ModelUnavailableError: No usable answer after all attempts.
            ModelNotConfiguredError: The key, the model or the address is wrong.
            ModelError: The server will never take this request.
        """
        try:
            return self._retry(self._post, self._request(messages, sampling))
        except _PassingError as error:
            raise outage(self.name, self._url, self._attempts, str(error)) from error

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat without blocking the event loop; raises what `complete` raises."""
        try:
            return await self._aretry(self._apost, self._request(messages, sampling))
        except _PassingError as error:
            raise outage(self.name, self._url, self._attempts, str(error)) from error

    def _request(self, messages: list[Message], sampling: Sampling) -> dict[str, Any]:
        request = {**self._settings, "messages": messages}
        if "temperature" in request:  # a model that takes none refuses it, and a seed with it
            drawn = {"temperature": sampling.temperature, "seed": sampling.seed}
            request |= {name: value for name, value in drawn.items() if value is not None}
        return request

    def _post(self, request: dict[str, Any]) -> Completion:
        try:
            response = self._client.post(self._url, json=request)
        except httpx.RequestError as error:
            raise self._broken(error) from error
        return self._read(response)

    async def _apost(self, request: dict[str, Any]) -> Completion:
        try:  # a client for this call alone: a pool of connections cannot outlive its event loop
            async with httpx.AsyncClient(**self._async_options) as client:
                response = await client.post(self._url, json=request)
        except httpx.RequestError as error:
            raise self._broken(error) from error
        return self._read(response)

    def _broken(self, error: httpx.RequestError) -> _PassingError:
        slow = isinstance(error, httpx.TimeoutException)
        return _PassingError("a time-out" if slow else said(repr(error), self._key))

    def _read(self, response: httpx.Response) -> Completion:
        status, where = response.status_code, f"{self.name} at {host_of(self._url)}"
        told = f"HTTP {status}: {said(response.text, self._key)}"
        if status in _PASSING_STATUSES or status >= 500:
            raise _PassingError(told, retry_after_s(response.headers.get("Retry-After")))
        if status in _UNCONFIGURED_STATUSES:
            raise ModelNotConfiguredError(f"{where} is not set up, check key and name ({told})")
        if status == 400 and TOO_LONG.search(response.text):
            return Completion("", "too_long")
        if not response.is_success:
            raise ModelError(f"{where} cannot answer this request ({told})")
        try:
            return read_completion(response.json())
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise _PassingError(f"a body that is not a chat completion: {said(response.text, self._key)}") from error
