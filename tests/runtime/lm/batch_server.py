"""The loopback server with Anthropic's Message Batches and count of tokens.

A batch is in progress for some polls; then each of its requests is thought about, and the results are told in reverse
order. Scripted faults come first, by the verb that they happen to. Every verb that was asked for is noted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from tests.runtime.lm.loopback import Handler, Loopback, Reply, answer, anthropic_body, error, running, text_of

Verb = Literal["create", "retrieve", "list", "results", "cancel", "count"]
Think = Callable[[dict[str, Any]], Reply]
"""What becomes of one request, by its parameters."""

LOST = Reply("lost")
"""A submission that is taken, and never answered."""
SHORT = Reply("short")
"""Results that end after a whole line, too early, with nothing in HTTP that says so."""
EXPIRED, CANCELED = Reply("expired"), Reply("canceled")
ERRORED = error(500, "Internal server error")
INVALID = error(400, "prompt is too long")
_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def echo(params: dict[str, Any]) -> Reply:
    """Answer with the last message."""
    return answer(text_of(params["messages"][-1]["content"]))


def asked(params: dict[str, Any]) -> str:
    """The last message of a request."""
    return text_of(params["messages"][-1]["content"])


@dataclass
class Held:
    """A batch on the server."""

    id: str
    requests: list[dict[str, Any]]
    polls: int
    """Polls until it ends."""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: list[dict[str, Any]] | None = None
    """None while it is in progress."""
    archived: bool = False


class BatchServer(Loopback):
    """The server; a single chat is answered like a request of a batch."""

    def __init__(self, think: Think = echo, *, polls: int = 1, **faults: list[Reply]) -> None:
        """Think about each request; `create=[error(429)]` is what the first submission gets."""
        super().__init__()
        self.RequestHandlerClass = _BatchHandler
        self.think, self.polls = think, polls
        self.faults: dict[str, list[Reply]] = dict(faults)
        self.verbs: list[Verb] = []
        self.batches: list[Held] = []
        self.watch: Callable[[str], None] = lambda _: None
        """Told of `before VERB` and `after VERB`, the latter before the answer is sent."""

    @property
    def submitted(self) -> Counter[str]:
        """How often each question was submitted."""
        return Counter(asked(each["params"]) for batch in self.batches for each in batch.requests)

    def hold(self, requests: list[dict[str, Any]], **known: Any) -> Held:
        """Take a batch."""
        held = Held(f"msgbatch_{len(self.batches):04}", requests, self.polls, **known)
        self.batches.append(held)
        return held

    def end(self, held: Held, otherwise: Reply | None = None) -> None:
        """Give every request its result, one by one or all the same."""
        if held.results is None:
            each = [(one["custom_id"], otherwise or self.think(one["params"])) for one in held.requests]
            held.results = [{"custom_id": name, "result": _result(reply)} for name, reply in reversed(each)]

    def next_reply(self, request: Any) -> Reply:
        """Answer a single chat."""
        self.requests.append(request)
        return self.think(request.body)

    def told(self, held: Held) -> dict[str, Any]:
        """A batch as the API tells it."""
        counts = Counter(each["result"]["type"] for each in held.results or [])
        kinds = ("succeeded", "errored", "canceled", "expired")
        gone = held.results is None or held.archived
        return {
            "id": held.id,
            "type": "message_batch",
            "processing_status": "in_progress" if held.results is None else "ended",
            "request_counts": {
                "processing": len(held.requests) - counts.total(),
                **{kind: counts[kind] for kind in kinds},
            },
            "created_at": held.created.isoformat(),
            "expires_at": (held.created + timedelta(hours=24)).isoformat(),
            "ended_at": None if held.results is None else held.created.isoformat(),
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": None if gone else f"{self.url}/messages/batches/{held.id}/results",
        }


def _result(reply: Reply) -> dict[str, Any]:
    if reply.kind in ("expired", "canceled"):
        return {"type": reply.kind}
    kind, name = ("errored", "error") if reply.kind == "error" else ("succeeded", "message")
    return {"type": kind, name: anthropic_body(reply)}


class _BatchHandler(Handler):
    server: BatchServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def _post(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/messages"):
            return super().do_POST()
        body = self._body()
        if path.endswith("/count_tokens"):
            return self._do("count", lambda: self._count(body))
        if path.endswith("/cancel"):
            return self._do("cancel", lambda: self._cancel(path.split("/")[-2]))
        return self._do("create", lambda: self._create(body))

    def _get(self) -> None:
        parts = urlsplit(self.path)
        *_, before, last = parts.path.split("/")
        if last == "batches":
            self._do("list", lambda: self._list(parse_qs(parts.query)))
        elif last == "results":
            self._do("results", lambda: self._results(self._held(before)))
        else:
            self._do("retrieve", lambda: self._retrieve(self._held(last)))

    do_POST, do_GET = _post, _get  # noqa: N815 - the base class's names

    def _do(self, verb: Verb, act: Callable[[], Any]) -> None:
        self.server.verbs.append(verb)
        self.server.watch(f"before {verb}")
        fault = next(iter(self.server.faults.get(verb, [])), None)
        if fault:
            self.server.faults[verb].pop(0)
        if fault and fault.kind not in ("lost", "short", "torn"):
            return self._fail(fault)
        try:
            body = act()
        except LookupError as missing:
            return self._fail(error(404, f"Not found: {missing}", retry_after_ms="1"))
        except ValueError as wrong:
            return self._fail(error(400, str(wrong), retry_after_ms="1"))
        self.server.watch(f"after {verb}")
        return self._answer(body, fault or answer())

    def _answer(self, body: Any, how: Reply) -> None:
        if how.kind == "lost":
            self.close_connection = True
            return
        if how.kind == "short":
            body = body.rpartition("\n")[0].rpartition("\n")[0]
        text = body if isinstance(body, str) else json.dumps(body)
        self.send(how, text.encode())

    def _fail(self, fault: Reply) -> None:
        if fault.kind == "drop":
            self.close_connection = True
        else:
            text = fault.text if fault.kind == "garbage" else json.dumps(anthropic_body(fault))
            self.send(fault, text.encode())

    def _body(self) -> dict[str, Any]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")

    def _held(self, name: str) -> Held:
        return next(iter([each for each in self.server.batches if each.id == name] or _missing(name)))

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        names = [each["custom_id"] for each in body["requests"]]
        if len(names) > 100_000 or not names:
            raise ValueError("requests: List should have between 1 and 100000 items")
        if not all(map(_ID.match, names)) or len(set(names)) < len(names):
            raise ValueError("requests.0.custom_id: String should match pattern, and be unique")
        return self.server.told(self.server.hold(body["requests"]))

    def _retrieve(self, held: Held) -> dict[str, Any]:
        if held.polls <= 0:
            self.server.end(held)
        held.polls -= 1
        return self.server.told(held)

    def _list(self, query: dict[str, list[str]]) -> dict[str, Any]:
        newest = self.server.batches[::-1]
        after = query.get("after_id", [""])[0]
        start = next((place + 1 for place, each in enumerate(newest) if each.id == after), 0)
        end = start + int(query.get("limit", ["20"])[0])
        page = [self.server.told(each) for each in newest[start:end]]
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
        return {"data": page, "has_more": end < len(newest), **ends}

    def _results(self, held: Held) -> str:
        if held.results is None:
            raise ValueError("the batch has not ended")
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in held.results)

    def _cancel(self, name: str) -> dict[str, Any]:
        held = self._held(name)
        self.server.end(held, CANCELED)
        return self.server.told(held)

    def _count(self, body: dict[str, Any]) -> dict[str, Any]:
        if "max_tokens" in body:
            raise ValueError("max_tokens: Extra inputs are not permitted")
        texts = [body.get("system", ""), *(each["content"] for each in body["messages"])]
        return {"input_tokens": sum(len(text_of(text)) for text in texts)}


def _missing(name: str) -> list[Held]:
    raise LookupError(name)


@contextmanager
def batch_server(think: Think = echo, *, polls: int = 1, **faults: list[Reply]) -> Generator[BatchServer]:
    """Serve batches on a thread of its own until the block ends."""
    with running(BatchServer(think, polls=polls, **faults)) as server:
        yield server
