"""What the tests of the recorder share: a redaction that is easy to see through, and all that a spool holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from dspy_reflex.recorder.spool import Bad, Spool

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"
MARK = "[password taken out]"
FAILURE: dict[str, Any] = {
    "agent_id": "support-7",
    "parent_agent_id": None,
    "ok": False,
    "task": "Refund order 4711",
    "expected_outcome": "The order is refunded",
    "actual_outcome": "The tool timed out",
    "severity": "high",
    "context": {"tool": "refund", "attempts": 3},
}


class Hunter:
    """Knows one secret."""

    def clears(self, payload: bytes) -> bool:
        """Whether it is not in there."""
        return SECRET.encode() not in payload

    def redact_value(self, value: Any) -> tuple[Any, dict[str, int]]:
        """Everything but the secret, which becomes longer than it was."""
        text = orjson.dumps(value).decode()
        found = text.count(SECRET)
        return orjson.loads(text.replace(SECRET, MARK)), {"password": found} if found else {}


def payloads(home: Path, limit: int = 1000) -> tuple[list[bytes], list[Bad]]:
    """All that is in a spool, page by page."""
    events: list[bytes] = []
    bad: list[Bad] = []
    spool = Spool(home)
    for path in spool.pending():
        offset = 0
        while True:
            page = spool.read(path, offset, limit)
            events += [payload for payload, _ in page.events]
            bad += page.bad
            offset = page.next_offset
            if page.at_end:
                break
    return events, bad


def events(home: Path) -> list[dict[str, Any]]:
    """All events of a spool, in which there is nothing else."""
    found, bad = payloads(home)
    assert bad == []
    return [orjson.loads(payload) for payload in found]


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that knows the package and these tests."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done
