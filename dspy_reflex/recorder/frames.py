"""Frames: how payloads lie one after the other in a mapped file, and how they are found again after damage.

A frame is a mark, the payload's length and its CRC-32 (both 32 bits, little-endian), and the payload. The checksum
starts from the length plus one, so that a mark with nothing but zeros behind it is no frame: what was never written is
zeros. The mark begins with a byte that UTF-8 does not have, so no payload of JSON text can hold a frame:
after damaged bytes, the next mark that begins a whole frame is where reading goes on.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

SUFFIX = ".seg"
MARK = b"\xffevt"
_HEADER = struct.Struct("<4sII")
MAX_FRAME_BYTES = 256 * 1024
MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - _HEADER.size


@dataclass(frozen=True, slots=True)
class Frame:
    """A payload that is whole."""

    payload: bytes
    start: int
    end: int
    """Where the next one begins."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that are no frame: torn, damaged or foreign."""

    start: int
    end: int
    """Where the next frame begins, or the end of the bytes."""


def pack(payload: bytes) -> bytes:
    """The frame of a payload.

    Raises:
        ValueError: It is longer than `MAX_PAYLOAD_BYTES`.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"{len(payload)} bytes; a frame takes {MAX_PAYLOAD_BYTES}")
    return _HEADER.pack(MARK, len(payload), zlib.crc32(payload, len(payload) + 1)) + payload


def unpack(content: bytes, start: int = 0) -> Frame | None:
    """The frame that begins there; None if none does, or not all of it is there."""
    first = start + _HEADER.size
    if first > len(content):
        return None
    mark, length, checksum = _HEADER.unpack_from(content, start)
    end = first + length
    if mark != MARK or length > MAX_PAYLOAD_BYTES or end > len(content):
        return None
    payload = content[first:end]
    return Frame(payload, start, end) if zlib.crc32(payload, length + 1) == checksum else None


def scan(content: bytes, start: int = 0) -> Iterator[Frame | Gap]:
    """All frames from an offset on and the gaps between them, in order; zeros at the end are neither."""
    while start < len(content):
        found = unpack(content, start) or _gap(content, start)
        if isinstance(found, Gap) and found.end == len(content) and not content[start:].strip(b"\0"):
            return
        yield found
        start = found.end


def _gap(content: bytes, start: int) -> Gap:
    at = content.find(MARK, start + 1)
    while at >= 0 and not unpack(content, at):
        at = content.find(MARK, at + 1)
    return Gap(start, at if at >= 0 else len(content))
