"""Claude through Anthropic's own SDK (extra [anthropic]), whose retries are used as they are.

Two things are added inside its retry loop: a `Retry-After` longer than `LONGEST_WAIT_S` is cut to that, and an HTTP 200
whose body is not a message is an outage and retried. No temperature is sent: SDK 2 has no such parameter
any more.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from dspy_reflex.errors import MissingExtraError, ModelError, ModelNotConfiguredError
from dspy_reflex.runtime.lm.model import Completion, Finish, Message
from dspy_reflex.runtime.lm.openai_compatible import host_of, outage, retry_after_s, said

_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
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
        self.name = name
        self._url, self._key, self._attempts, self._max_tokens = url, key, attempts, max_tokens
        options: dict[str, Any] = {"api_key": key, "base_url": url.removesuffix("/v1"), "max_retries": attempts - 1}
        timeout = anthropic.Timeout(timeout_s, pool=None)
        self._client = anthropic.Anthropic(**options, timeout=timeout, middleware=[_checked])
        weakref.finalize(self, self._client.close)
        one_shot = {"Connection": "close"}  # nothing may stay open when a loop ends
        self._async_clients = PerLoop(
            lambda: anthropic.AsyncAnthropic(
                **options, timeout=timeout, middleware=[_achecked], default_headers=one_shot
            )
        )

    def complete(self, messages: list[Message]) -> Completion:
        """Answer one chat.

        Raises:
            ModelUnavailableError: No usable answer after all attempts.
            ModelNotConfiguredError: The key, the model or the address is wrong.
            ModelError: The server will never take this request.
        """
        import anthropic

        try:
            return _read(self._client.messages.create(**self._request(messages)))
        except anthropic.AnthropicError as error:
            raise self._failure(error) from None  # its text may quote the key

    async def acomplete(self, messages: list[Message]) -> Completion:
        """Answer one chat without blocking the event loop; raises what `complete` raises."""
        import anthropic

        try:
            return _read(await self._async_clients.get().messages.create(**self._request(messages)))
        except anthropic.AnthropicError as error:
            raise self._failure(error) from None  # its text may quote the key

    def _request(self, messages: list[Message]) -> dict[str, Any]:
        system = "\n\n".join(each["content"] for each in messages if each["role"] == "system")
        return {
            "model": self.name.partition("/")[2],
            "max_tokens": self._max_tokens,
            "messages": [each for each in messages if each["role"] != "system"],
            **({"system": system} if system else {}),
        }

    def _failure(self, error: Exception) -> ModelError:
        import anthropic

        if isinstance(error, anthropic.APITimeoutError):
            return outage(self.name, self._url, self._attempts, "a time-out")
        what = said(str(error.__cause__ or error), self._key)
        if not isinstance(error, anthropic.APIStatusError):
            return outage(self.name, self._url, self._attempts, what)
        status, where = error.status_code, f"{self.name} at {host_of(self._url)}"
        told = f"HTTP {status}: {said(error.api_message or error.message, self._key)}"
        if status in _PASSING_STATUSES or status >= 500:
            return outage(self.name, self._url, self._attempts, told)
        if status in _UNCONFIGURED_STATUSES:
            return ModelNotConfiguredError(f"{where} is not set up, check key and name ({told})")
        return ModelError(f"{where} cannot answer this request ({told})")


def _read(message: Any) -> Completion:
    return Completion(
        text="".join(block.text for block in message.content if block.type == "text"),
        finish=_FINISH.get(str(message.stop_reason), "stop"),
        input_tokens=message.usage.input_tokens or 0,
        output_tokens=message.usage.output_tokens or 0,
    )


def _checked(request: Any, call_next: Callable[[Any], Any]) -> Any:
    response = call_next(request)
    _check(response.http_response)
    return response


async def _achecked(request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    response = await call_next(request)
    _check(response.http_response)
    return response


def _check(response: Any) -> None:
    """Cut a long `Retry-After`, and make the SDK try again after a success that holds no message."""
    import anthropic

    with suppress(ValueError):  # the SDK would read it first
        response.headers["retry-after"] = str(float(response.headers.pop("retry-after-ms", "")) / 1000)
    wait_s = retry_after_s(response.headers.get("retry-after"))
    if wait_s is not None:
        response.headers["retry-after"] = str(wait_s)
    if response.is_success and not _is_message(response):
        raise anthropic.RetryableError(f"a body that is not a message: {response.text}")


def _is_message(response: Any) -> bool:
    try:
        body = response.json()
        return isinstance(body["content"], list) and isinstance(body["usage"], dict)
    except (ValueError, LookupError, TypeError):
        return False
