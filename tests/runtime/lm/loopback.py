"""A real HTTP server on 127.0.0.1 that speaks chat completions and Anthropic's Messages from a script of replies.

A reply says what happens, not how a protocol spells it; the path asked for decides that. When the script is over, the
server answers every chat with the text of its last message, so that concurrent callers can tell their answers apart.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeVar

from dspy_reflex.runtime.lm.model import Completion, LanguageModel, Message

Run = Callable[[LanguageModel, list[Message]], Completion]
"""A way of calling a model."""

KEY = "sk-test-0123456789-abcdefghij"
"""The key that tests give to clients, and that no error may hold."""


def run_sync(model: LanguageModel, messages: list[Message]) -> Completion:
    """Call a model and wait."""
    return model.complete(messages)


def run_async(model: LanguageModel, messages: list[Message]) -> Completion:
    """Call a model in an event loop of its own."""
    return asyncio.run(model.acomplete(messages))


Kind = Literal[
    "answer", "cut", "refusal", "error", "garbage", "torn", "slow", "drop", "lost", "short", "expired", "canceled"
]


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    kind: Kind = "answer"
    text: str = "ok"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    usage: dict[str, int] = field(default_factory=dict[str, int])
    """What Anthropic counts besides 11 tokens in and 7 out."""


def answer(text: str = "ok", **usage: int) -> Reply:
    """Answer well."""
    return Reply(text=text, usage=usage)


def cut(text: str = "half an ans") -> Reply:
    """Answer, but run out of tokens."""
    return Reply("cut", text)


def refusal(text: str = "I cannot help with that.") -> Reply:
    """Decline."""
    return Reply("refusal", text)


def error(status: int, text: str = "scripted error", **headers: str) -> Reply:
    """Answer with an HTTP error; `retry_after="1"` becomes a header. Anthropic's SDK is told to wait 1 ms."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply("error", text, status, named or {"retry-after-ms": "1"})


def garbage(text: str = "<html>welcome to the proxy</html>") -> Reply:
    """Answer HTTP 200 with a body that is no protocol's."""
    return Reply("garbage", text)


def torn() -> Reply:
    """Promise more bytes than are sent."""
    return Reply("torn")


def slow() -> Reply:
    """Say nothing until the server stops."""
    return Reply("slow")


def drop() -> Reply:
    """Close the connection without a word."""
    return Reply("drop")


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: dict[str, Any]


class Loopback(ThreadingHTTPServer):
    """The server; `requests` records every POST in order of arrival."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, *script: Reply) -> None:
        """Bind to a free port."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Request] = []
        self.stopped = threading.Event()
        self._script = iter(script)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address up to and with `/v1`."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next_reply(self, request: Request) -> Reply:
        """Record a request and take the next reply."""
        with self._lock:
            self.requests.append(request)
            return next(self._script, None) or answer(text_of(request.body["messages"][-1]["content"]))

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent about clients that went away."""


class Handler(BaseHTTPRequestHandler):
    server: Loopback  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.next_reply(Request(self.path, headers, json.loads(raw)))
        if reply.kind == "slow":
            self.server.stopped.wait(30)
        if reply.kind in ("slow", "drop"):
            self.close_connection = True
            return
        render = anthropic_body if self.path.endswith("/messages") else _openai
        self.send(reply, reply.text.encode() if reply.kind == "garbage" else json.dumps(render(reply)).encode())

    def send(self, reply: Reply, body: bytes) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", "text/html" if reply.kind == "garbage" else "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if reply.kind == "torn" else body)
        self.close_connection = self.close_connection or reply.kind == "torn"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def _openai(reply: Reply) -> dict[str, Any]:
    if reply.kind == "error":
        return {"error": {"message": reply.text, "type": "scripted", "code": None}}
    refused = reply.kind == "refusal"
    message = {
        "role": "assistant",
        "content": None if refused else reply.text,
        "refusal": reply.text if refused else None,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "length" if reply.kind == "cut" else "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def anthropic_body(reply: Reply) -> dict[str, Any]:
    if reply.kind == "error":
        kind = _ANTHROPIC_ERRORS.get(reply.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": reply.text}}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [{"type": "text", "text": reply.text}],
        "stop_reason": {"cut": "max_tokens", "refusal": "refusal"}.get(reply.kind, "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7, **reply.usage},
    }


@contextmanager
def loopback(*script: Reply) -> Generator[Loopback]:
    """Serve a script on a thread of its own until the block ends."""
    with running(Loopback(*script)) as server:
        yield server


LoopbackT = TypeVar("LoopbackT", bound=Loopback)


@contextmanager
def running(server: LoopbackT) -> Generator[LoopbackT]:
    """Serve on a thread of its own until the block ends."""
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
