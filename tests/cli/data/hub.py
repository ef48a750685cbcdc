"""A real HTTP server on 127.0.0.1 that speaks what `huggingface_hub` asks of the hub to make and fill a repository."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.runtime.lm.loopback import Loopback

TOKEN = "hf_0123456789abcdefghij"
"""The token that tests give to the client, and that no message may hold."""


@dataclass(frozen=True)
class Asked:
    """What a client asked."""

    what: str
    """Method and path."""
    token: str | None
    body: str

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Repository:
    """The one repository of the hub."""

    visibility: str | None = None
    """None while it is not there."""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])


class Hub(Loopback):
    """The server. It answers `status` to paths that `refused` is in, and 404 for a repository that is not there."""

    def __init__(self, *, visibility: str | None = None, refused: str = "", status: int = 500) -> None:
        super().__init__()
        self.RequestHandlerClass = _Handler
        self.repository = Repository(visibility)
        self.asked: list[Asked] = []
        self.refused = refused
        self.status = status

    @property
    def endpoint(self) -> str:
        """What `HF_ENDPOINT` is set to."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def paths(self) -> list[str]:
        """Method and path of every request, in order of arrival."""
        return [one.what for one in self.asked]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Status and body."""
        self.asked.append(asked)
        path = asked.what.partition(" ")[2]
        if self.refused and self.refused in path:
            return self.status, {"error": "as scripted"}
        if path == "/api/repos/create":
            return self._create(asked.json)
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path.endswith("/preupload/main"):
            files = [file["path"] for file in asked.json["files"]]
            return 200, {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in files]}
        if path.endswith("/commit/main"):
            return self._commit(asked.body)
        if path.startswith("/api/datasets/") and self.repository.visibility:
            return 200, {"id": "me/mine", "private": self.repository.visibility == "private"}
        return 404, {"error": "no such path"}

    def _create(self, body: Any) -> tuple[int, Any]:
        url = {"url": f"{self.endpoint}/datasets/{body['organization']}/{body['name']}"}
        if self.repository.visibility:
            return 409, url | {"error": "there already"}
        self.repository.visibility = body["visibility"]
        return 200, url

    def _commit(self, body: str) -> tuple[int, Any]:
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                self.repository.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        return 200, {"success": True, "commitOid": "0" * 40, "commitUrl": f"{self.endpoint}/datasets/me/mine/commit/0"}


class _Handler(BaseHTTPRequestHandler):
    server: Hub  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply("")

    def do_POST(self) -> None:
        self._reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def _reply(self, sent: str) -> None:
        asked = Asked(f"{self.command} {self.path}", self.headers["Authorization"], sent)
        status, answer = self.server.answer(asked)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass
