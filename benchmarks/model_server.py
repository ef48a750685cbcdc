"""A model server on loopback that answers as the offline learner does, as slowly as it is asked to, and counts.

An address says who asks, and how long an answer takes: http://127.0.0.1:PORT/SIDE/SECONDS/v1. So one server serves both
sides of a comparison and tells them apart. It is a process of its own and shares no interpreter lock with its clients;
what it has worked out once it knows from then on, so that a second run waits for the latency and for nothing else.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, cast

import httpx

from dspy_reflex.runtime.lm import offline

ROOT = Path(__file__).parents[1]
LATE_S = 0.02
"""An answer that takes so much longer than it should is late."""


@dataclass(frozen=True)
class Counts:
    """What one side has asked so far. A question counts when it arrives, whether or not its answer is waited for."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    late: int = 0
    """Answers that took longer than they should: the machine was busy, and not only the latency was measured."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class ModelServer:
    """The server as its clients know it."""

    root: str

    def url(self, side: str, latency_s: float = 0.0) -> str:
        """The address, up to and with `/v1`, under which a side is answered after so long."""
        return f"{self.root}/{side}/{latency_s}/v1"

    def counts(self, side: str) -> Counts:
        """What a side has asked so far."""
        found = httpx.get(f"{self.root}/{side}", verify=False)  # noqa: S501 - plain HTTP; certificates take 20 ms to read
        return Counts(**found.raise_for_status().json())


@contextmanager
def serving() -> Generator[ModelServer]:
    """Run the server until the block ends."""
    command = [sys.executable, "-m", "benchmarks.model_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        told, asked = cast("IO[str]", process.stdout), cast("IO[str]", process.stdin)
        try:
            yield ModelServer(f"http://127.0.0.1:{told.readline().strip()}")
        finally:
            asked.close()  # it ends with whoever started it, even with one that was killed


class Server(ThreadingHTTPServer):
    """The server as it is in its own process."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self) -> None:
        """Bind to a free port."""
        super().__init__(("127.0.0.1", 0), Handler)
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._asked: dict[str, Counter[bytes]] = defaultdict(Counter)
        self._known: dict[tuple[bytes, int], str] = {}

    def count(self, side: str, **more: int) -> None:
        """Add to what a side has asked."""
        with self._lock:
            self._counts[side].update(more)

    def counted(self, side: str) -> dict[str, int]:
        """What a side has asked."""
        with self._lock:
            return dict(self._counts[side])

    def answer(self, side: str, chat: Sequence[Mapping[str, str]], seed: int | None) -> str:
        """The offline learner's answer. Who gives no seed is given another one each time the same thing is asked."""
        question = hashlib.sha256(json.dumps(chat).encode()).digest()
        with self._lock:
            drawn = self._asked[side][question]
            self._asked[side][question] += 1
        key = (question, int.from_bytes(question[:4]) + drawn if seed is None else seed)
        if key not in self._known:
            self._known[key] = offline.answer(chat, key[1])
        return self._known[key]

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent about clients that went away."""


class Handler(BaseHTTPRequestHandler):
    """One connection: chat completions, and what was counted."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Tell what a side has asked."""
        self._send(self.server.counted(self.path.strip("/")))

    def do_POST(self) -> None:
        """Answer a chat."""
        arrived = time.monotonic()
        _, side, latency_s, *_ = self.path.split("/")
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chat = [{"role": each["role"], "content": _text(each["content"])} for each in asked["messages"]]
        used = sum(len(each["content"]) for each in chat) // offline.CHARS_PER_TOKEN
        self.server.count(side, calls=1, input_tokens=used)
        text = self.server.answer(side, chat, asked.get("seed"))
        self.server.count(side, output_tokens=len(text) // offline.CHARS_PER_TOKEN)
        left_s = arrived + float(latency_s) - time.monotonic()
        time.sleep(max(0.0, left_s))
        self.server.count(side, late=int(float(latency_s) > 0 and left_s < -LATE_S))
        self._send(_completion(asked["model"], text, used))

    def _send(self, told: Mapping[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the standard library
        """Nothing: the counts are the log."""


def _text(content: str | Sequence[Mapping[str, str]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def _completion(model: str, text: str, input_tokens: int) -> dict[str, Any]:
    output_tokens = len(text) // offline.CHARS_PER_TOKEN
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    }


def main() -> None:
    """Serve until standard input ends."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
