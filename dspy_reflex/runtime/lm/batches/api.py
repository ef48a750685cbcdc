"""Anthropic's Message Batches: many chats at half the price, answered within 24 hours, most within one.

Each request of a batch is what `Claude.complete` would send, so its answer may stand in for a call's. A batch has no
name, and the API takes no idempotency key: a submission whose answer got lost is found again by the ids of its
requests, which only its results tell. So `submit` sends a batch a second time only after a plain no (429, 529). After
anything else, whoever calls it looks with `since` first. Results are kept for 29 days, in any order.
https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

import stamina

from dspy_reflex.errors import ConfigError, ModelError
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.claude_messages import completion_of
from dspy_reflex.runtime.lm.model import Completion, Message
from dspy_reflex.runtime.lm.openai_compatible import LONGEST_WAIT_S, retry_after_s

MAX_REQUESTS = 100_000
"""The most that one batch may hold."""
MAX_BYTES = 256_000_000
"""The most that the body of a submission may measure."""
SUBMIT_TIMEOUT_S = 600.0
"""How long to wait for a word on a submission: some are large."""
_ENVELOPE_BYTES = 128
"""What a request measures besides its parameters, at most: its id, and the names around it."""
_COUNTS = ("processing", "succeeded", "errored", "expired", "canceled")
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PAGE = 100
"""How many batches are listed at a time."""

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Status:
    """How far a batch is."""

    id: str
    ended: bool
    counts: Mapping[str, int]
    """Requests by what became of them; all are `processing` until the whole batch has ended."""

    @property
    def requests(self) -> int:
        """All of its requests."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        return ", ".join(f"{self.counts[what]} {what}" for what in _COUNTS if self.counts[what])


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a request has no answer; nobody pays for it. A refusal is an answer."""

    reason: Literal["errored", "canceled", "expired", "invalid"]
    """`invalid`: the provider will never take this request. The others may be asked again."""
    detail: str = ""
    """In the provider's words."""


class ClaudeBatches:
    """The batches of a model."""

    def __init__(self, model: Claude) -> None:
        """Use the model's connection; nothing is sent."""
        self._model, self._sdk = model, model.sdk
        self._once = model.sdk.with_options(max_retries=0, timeout=SUBMIT_TIMEOUT_S)
        self._retry = stamina.RetryingCaller(attempts=model.attempts, timeout=None, wait_max=LONGEST_WAIT_S).on(
            _said_no
        )

    def submit(self, chats: Mapping[str, list[Message]]) -> str:
        """Submit chats, by ids of at most 64 letters, digits, `_` or `-`, and return the id of the batch.

        Raises:
            ConfigError: An id is not one.
            ModelUnavailableError: There was no answer, or a no after all attempts; without an answer the batch may be
                there all the same.
            ModelError: The provider will never take this batch.
        """
        import anthropic

        if wrong := [each for each in chats if not _CUSTOM_ID.fullmatch(each)]:
            raise ConfigError(f"{wrong[0]!r} is no id for a batch: use up to 64 letters, digits, _ and -")
        requests = [{"custom_id": each, "params": self._model.request(chat)} for each, chat in chats.items()]
        try:
            return self._retry(self._once.messages.batches.create, requests=cast("Any", requests)).id
        except anthropic.AnthropicError as error:
            raise self._model.failure(error, self._model.attempts if _said_no(error) else 1) from None

    def poll(self, batch_id: str) -> Status:
        """Tell how far a batch is; raises what `Claude.complete` raises."""
        return _status(self._told(lambda: self._sdk.messages.batches.retrieve(batch_id)))

    def since(self, moment: datetime) -> Iterator[Status]:
        """Tell of the workspace's batches that were created since then, the newest first."""
        page = self._told(lambda: self._sdk.messages.batches.list(limit=PAGE))
        while True:
            for batch in page.data:
                if batch.created_at < moment:
                    return
                yield _status(batch)
            if not page.has_next_page():
                return
            page = self._told(page.get_next_page)

    def results(self, batch_id: str) -> str:
        """Fetch the results of a batch that has ended, as JSON Lines.

        Raises:
            ModelError: They are not kept any more, or did not come as a whole.
        """
        for _ in range(self._model.attempts):
            batch: Any = self._told(lambda: self._sdk.messages.batches.retrieve(batch_id))
            if not batch.results_url:
                raise ModelError(f"the results of {batch_id} are not kept any more: name another folder to ask again")
            url = str(batch.results_url)
            text = self._told(lambda url=url: self._sdk.get(url, cast_to=str))
            if _is_whole(text, _status(batch).requests):
                return text
        raise ModelError(f"the results of {batch_id} did not come as a whole; try again later")

    def _told(self, call: Callable[[], Done]) -> Done:
        import anthropic

        try:
            return call()
        except anthropic.AnthropicError as error:
            raise self._model.failure(error) from None  # its text may quote the key


def _said_no(error: Exception) -> bool | float:
    """Whether a submission was turned down for now, and after how many seconds to try again if the server said so."""
    import anthropic

    if not isinstance(error, anthropic.APIStatusError) or error.status_code not in (429, 529):
        return False
    wait_s = retry_after_s(error.response.headers.get("retry-after"))
    return True if wait_s is None else wait_s


def _status(batch: Any) -> Status:
    counts = {what: getattr(batch.request_counts, what) for what in _COUNTS}
    return Status(batch.id, batch.processing_status == "ended", counts)


def in_batches(requests: Iterable[Mapping[str, Any]]) -> list[list[int]]:
    """The places of requests, divided into as few batches as the API's limits allow, in order."""
    batches: list[list[int]] = []
    room = 0
    for place, request in enumerate(requests):
        size = len(json.dumps(request)) + _ENVELOPE_BYTES
        if size > room or len(batches[-1]) == MAX_REQUESTS:
            batches.append([])
            room = MAX_BYTES - _ENVELOPE_BYTES
        batches[-1].append(place)
        room -= size
    return batches


def read_results(lines: str) -> dict[str, Completion | Unanswered]:
    """What became of each request, by its id.

    Raises:
        ValueError: A line is not a result.
    """
    try:
        return {result["custom_id"]: _answer(result["result"]) for result in _decoded(lines)}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"a line is not a result: {error!r}") from error


def _answer(result: Mapping[str, Any]) -> Completion | Unanswered:
    if result["type"] == "succeeded":
        return completion_of(result["message"])
    if result["type"] != "errored":
        return Unanswered(result["type"])
    error = result["error"]["error"]
    detail = f"{error['type']}: {error['message']}"
    return Unanswered("invalid" if error["type"] == "invalid_request_error" else "errored", detail)


def _decoded(lines: str) -> Sequence[Mapping[str, Any]]:
    return [json.loads(line) for line in lines.split("\n") if line]  # not splitlines: a text may hold U+2028


def _is_whole(lines: str, requests: int) -> bool:
    try:
        return len({result["custom_id"] for result in _decoded(lines)}) == requests
    except (ValueError, LookupError, TypeError):
        return False
