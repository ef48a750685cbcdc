"""Lines: how payloads lie in a file that is appended to, one JSON text each."""

from __future__ import annotations

from collections.abc import Iterator

from dspy_reflex.recorder.frames import Frame, Gap

SUFFIX = ".jsonl"


def pack(payload: bytes) -> bytes:
    """The line of a payload. It begins with a line end of its own, so that what was torn before it stays alone."""
    return b"\n" + payload + b"\n"


def scan(content: bytes, start: int = 0) -> Iterator[Frame | Gap]:
    """All lines from an offset on that say something, in order; a last one without its end is a gap."""
    while start < len(content):
        end = content.find(b"\n", start) + 1
        if not end:
            yield Gap(start, len(content))
            return
        if line := content[start:end].strip(b" \t\r\n"):
            yield Frame(line, start, end)
        start = end
