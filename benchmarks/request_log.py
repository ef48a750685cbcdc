"""A proxy on loopback that writes down every chat a model server is asked, so that what a client says can be checked.

It stands outside the client: it also knows the calls of a process that was killed, and those that nobody waited for.
"""

from __future__ import annotations

import hashlib
import json
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

import httpx

from benchmarks.chat_grammar import grammar_for

OK = 200
POLL_S = 0.05
"""How often the proxy looks whether it should end."""
BROKEN = 502
"""What the proxy answers when the server behind it breaks the connection."""


@dataclass(frozen=True)
class Asked:
    """One request, and what the server made of it."""

    phase: str
    """What the job was doing when it arrived."""
    digest: str
    """SHA-256 of the request: equal requests have equal ones."""
    random: bool
    """Whether it asks for a random answer without a seed, so that asking it twice may be meant."""
    seconds: float
    """How long the server took."""
    status: int
    taken: bool
    """Whether the client was still there when the answer was; after a time-out or a kill it is not."""
    input_tokens: int
    output_tokens: int
    """As the server counted them; 0 when it did not say."""
    finish: str
    """The server's own word for why it stopped; empty without an answer."""
    text: str
    """What was answered; empty without an answer."""


class RequestLog:
    """What was asked so far. Safe with threads."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.phase = ""
        self.constrained = False
        """Whether the server holds the model to the form that it is asked for."""
        self._changed = threading.Condition()
        self._asked: list[Asked] = []
        self._arrived = Counter[str]()
        self._open = 0

    def arrive(self) -> str:
        """Note that a request came in; in which phase is returned."""
        with self._changed:
            self._open += 1
            self._arrived[self.phase] += 1
            self._changed.notify_all()
            return self.phase

    def add(self, asked: Asked) -> None:
        """Note what became of a request that came in."""
        with self._changed:
            self._open -= 1
            self._asked.append(asked)
            self._changed.notify_all()

    def of(self, *phases: str) -> list[Asked]:
        """The requests of some phases in the order of their answers; of all without names."""
        with self._changed:
            return [one for one in self._asked if not phases or one.phase in phases]

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Wait until so many requests of this phase came in; whether they did in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._arrived[self.phase] >= count, timeout_s)

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until the server has nothing more to do, also for nobody; whether it came to that in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, timeout_s)


def repeated(asked: Iterable[Asked]) -> int:
    """How many answers a client took although it had taken an answer to the same request before.

    An answer that came too late for the client is no answer: it was killed meanwhile, or had given up and asks again.
    """
    taken = Counter(one.digest for one in asked if one.status == OK and one.taken and not one.random)
    return sum(count - 1 for count in taken.values())


def summary(asked: Sequence[Asked]) -> dict[str, Any]:
    """Calls, tokens and seconds of some requests; the seconds are those of answered ones."""
    answered = [one for one in asked if one.status == OK]
    seconds = [one.seconds for one in answered] or [0.0]
    return {
        "calls": len(asked),
        "answered": len(answered),
        "too_late": sum(not one.taken for one in answered),
        "cut_off": sum(one.finish == "length" for one in answered),
        "input_tokens": sum(one.input_tokens for one in asked),
        "output_tokens": sum(one.output_tokens for one in asked),
        "median_s": round(median(seconds), 2),
        "longest_s": round(max(seconds), 2),
    }


@contextmanager
def recording(upstream: str, answer_tokens: int) -> Generator[tuple[str, RequestLog]]:
    """Run the proxy.

    Args:
        upstream: The server's address up to and with `/v1`.
        answer_tokens: Longest answer that it lets the server give, whatever the client allows.

    Yields:
        The proxy's own address up to and with `/v1`, and its log.
    """
    log = RequestLog()
    with httpx.Client(base_url=upstream, timeout=None) as client:  # noqa: S113 - it is the client that gets impatient
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(client, log, answer_tokens))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1", log
        finally:
            server.shutdown()
            server.server_close()


def _handler(client: httpx.Client, log: RequestLog, answer_tokens: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            phase, started = log.arrive(), time.perf_counter()
            longest = min(answer_tokens, asked.get("max_tokens") or answer_tokens)
            grammar = grammar_for(asked["messages"][-1]["content"]) if log.constrained else None
            status, content = _forwarded(client, {**asked, "max_tokens": longest, "grammar": grammar})
            taken = _is_there(self.connection)
            log.add(_entry(phase, asked, time.perf_counter() - started, status, content, taken))
            with suppress(OSError):  # nobody is waiting any more
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the standard library
            """Nothing: the log is the log."""

    return Handler


def _forwarded(client: httpx.Client, request: dict[str, Any]) -> tuple[int, bytes]:
    try:
        answer = client.post("chat/completions", json=request)
    except httpx.RequestError as error:
        return BROKEN, json.dumps({"error": {"message": repr(error)}}).encode()
    return answer.status_code, answer.content


def _is_there(connection: socket.socket) -> bool:
    """Whether the other side still holds the connection open; it sends nothing before it has its answer."""
    readable, _, _ = select.select([connection], [], [], 0)
    return not readable


def _entry(phase: str, asked: dict[str, Any], seconds: float, status: int, content: bytes, taken: bool) -> Asked:
    answer: dict[str, Any] = json.loads(content) if status == OK else {}
    choice: dict[str, Any] = (answer.get("choices") or [{}])[0]
    usage: dict[str, Any] = answer.get("usage") or {}
    return Asked(
        phase=phase,
        digest=hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest(),
        random=asked.get("temperature") != 0 and asked.get("seed") is None,
        seconds=seconds,
        status=status,
        taken=taken,
        input_tokens=usage.get("prompt_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
        finish=choice.get("finish_reason") or "",
        text=(choice.get("message") or {}).get("content") or "",
    )
