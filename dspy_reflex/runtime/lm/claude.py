"""Claude through Anthropic's own SDK (extra [anthropic]), whose retries are used as they are.

Two things are added inside its retry loop: a `Retry-After` longer than `LONGEST_WAIT_S` is cut to that, and an HTTP 200
whose body is not what was asked for is an outage and retried. Neither temperature nor seed is sent, whatever is asked for: SDK 2
has no such parameters any more.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from dspy_reflex.errors import MissingExtraError, ModelError, ModelNotConfiguredError
from dspy_reflex.runtime.lm.claude_messages import completion_of, request_of
from dspy_reflex.runtime.lm.model import PLAIN, TOO_LONG, Completion, Message, Sampling
from dspy_reflex.runtime.lm.openai_compatible import host_of, outage, retry_after_s, said

_UNCONFIGURED_STATUSES = frozenset({401, 403, 404})
_PASSING_STATUSES = frozenset({408, 409, 429})

Client = TypeVar("Client")


class PerLoop(Generic[Client]):
    """One async client per event loop, made at its first use: a pool of connections cannot outlive its loop."""

    def __init__(self, make: Callable[[], Client]) -> None:
        """Remember how to make one."""
        self._make = make
        self._lock = threading.Lock()
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = weakref.WeakKeyDictionary()

    def get(self) -> Client:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                self._clients[loop] = self._make()
            return self._clients[loop]


class Claude:
    """A `LanguageModel` over Anthropic's Messages API. Safe to share between threads and event loops."""

    def __init__(
        self,
        name: str,
        *,
        url: str,
        key: str,
        timeout_s: float = 60.0,
        attempts: int = 4,
        max_tokens: int = 1024,
    ) -> None:
        """Prepare the clients; nothing is sent.

        Args:
            name: As `anthropic/claude-opus-5-5`.
            url: The address up to and with `/v1`.
            key: The API key.
            timeout_s: Longest wait for a connection, and between two bytes of an answer.
            attempts: How often a call is sent at most; at least 1.
            max_tokens: Longest answer; the model's thinking counts too.

        Raises:
            MissingExtraError: The SDK is not installed.
        """
        try:
            import anthropic
        except ImportError as error:
            raise MissingExtraError(f"The model {name}", "anthropic") from error
        self.name, self.attempts, self.max_tokens = name, attempts, max_tokens
        self._url, self._key = url, key
        options: dict[str, Any] = {"api_key": key, "base_url": url.removesuffix("/v1"), "max_retries": attempts - 1}
        timeout = anthropic.Timeout(timeout_s, pool=None)
        self.sdk = anthropic.Anthropic(**options, timeout=timeout, middleware=[_checked])
        weakref.finalize(self, self.sdk.close)
        one_shot = {"Connection": "close"}  # nothing may stay open when a loop ends
        self._async_clients = PerLoop(
            lambda: anthropic.AsyncAnthropic(
                **options, timeout=timeout, middleware=[_achecked], default_headers=one_shot
            )
        )

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat.

        Raises:
            ModelUnavailableError: No usable answer after all attempts.
            ModelNotConfiguredError: The key, the model or the address is wrong.
            ModelError: The server will never take this request.
        """
        import anthropic

        try:
            return _read(self.sdk.messages.create(**self.request(messages)))
        except anthropic.AnthropicError as error:
            return self._too_long(error)

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat without blocking the event loop; raises what `complete` raises."""
        import anthropic

        try:
            return _read(await self._async_clients.get().messages.create(**self.request(messages)))
        except anthropic.AnthropicError as error:
            return self._too_long(error)

    def count_tokens(self, messages: list[Message]) -> int:
        """Ask the provider how many input tokens a chat is; that costs nothing. Raises what `complete` raises."""
        import anthropic

        request = self.request(messages)
        del request["max_tokens"]
        try:
            return self.sdk.messages.count_tokens(**request).input_tokens
        except anthropic.AnthropicError as error:
            raise self.failure(error) from None  # its text may quote the key

    def request(self, messages: list[Message]) -> dict[str, Any]:
        """Return what is sent for one chat, alone or in a batch."""
        return request_of(self.name, self.max_tokens, messages)

    def _too_long(self, error: Exception) -> Completion:
        """What is left to say of a question that is longer than the model can read; any other error is raised."""
        import anthropic

        if isinstance(error, anthropic.BadRequestError) and TOO_LONG.search(error.message):
            return Completion("", "too_long")
        raise self.failure(error) from None  # its text may quote the key

    def failure(self, error: Exception, attempts: int = 0) -> ModelError:
        """Return one of the SDK's errors as one of ours, in a sentence that does not hold the key.

        Args:
            error: An `AnthropicError`.
            attempts: How often it was tried; 0 for as often as this client does.
        """
        import anthropic

        attempts = attempts or self.attempts
        if isinstance(error, anthropic.APITimeoutError):
            return outage(self.name, self._url, attempts, "a time-out")
        what = said(str(error.__cause__ or error), self._key)
        if not isinstance(error, anthropic.APIStatusError):
            return outage(self.name, self._url, attempts, what)
        status, where = error.status_code, f"{self.name} at {host_of(self._url)}"
        told = f"HTTP {status}: {said(error.api_message or error.message, self._key)}"
        if status in _PASSING_STATUSES or status >= 500:
            return outage(self.name, self._url, attempts, told)
        if status in _UNCONFIGURED_STATUSES:
            return ModelNotConfiguredError(f"{where} is not set up, check key and name ({told})")
        return ModelError(f"{where} cannot answer this request ({told})")


def _read(message: Any) -> Completion:
    return completion_of(message.to_dict())


def _checked(request: Any, call_next: Callable[[Any], Any]) -> Any:
    response = call_next(request)
    _check(request, response.http_response)
    return response


async def _achecked(request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    response = await call_next(request)
    _check(request, response.http_response)
    return response


def _check(request: Any, response: Any) -> None:
    """Cut a long `Retry-After`, and make the SDK try again after a success that does not hold what was asked for."""
    import anthropic

    with suppress(ValueError):  # the SDK would read it first
        response.headers["retry-after"] = str(float(response.headers.pop("retry-after-ms", "")) / 1000)
    wait_s = retry_after_s(response.headers.get("retry-after"))
    if wait_s is not None:
        response.headers["retry-after"] = str(wait_s)
    what, fields = _wanted(request)
    if response.is_success and not _holds(response, fields):
        raise anthropic.RetryableError(f"a body that is not {what}: {response.text}")


def _wanted(request: Any) -> tuple[str, dict[str, type]]:
    """What a request asks for, and the fields that it has."""
    if request.url.endswith("/messages"):
        return "a message", {"content": list, "usage": dict}
    if request.url.endswith("/count_tokens"):
        return "a count of tokens", {"input_tokens": int}
    if request.method == "get" and request.url.endswith("/batches"):
        return "a list of batches", {"data": list}
    if request.cast_to is str:
        return "text", {}
    return "a batch", {"id": str, "request_counts": dict}


def _holds(response: Any, fields: dict[str, type]) -> bool:
    try:
        return not fields or all(isinstance(response.json()[name], kind) for name, kind in fields.items())
    except (ValueError, LookupError, TypeError):
        return False
