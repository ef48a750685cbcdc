"""Frames come back as they went in, and damage costs no more than what it hit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.recorder.frames import MARK, MAX_PAYLOAD_BYTES, Frame, Gap, pack, scan, unpack

anything = st.lists(st.binary(max_size=60), max_size=8)
texts = st.lists(st.text(max_size=30).map(lambda text: json.dumps(text, ensure_ascii=False).encode()), max_size=8)
at_least_one = texts.filter(bool)


def found(content: bytes) -> list[bytes]:
    """The payloads of all whole frames."""
    return [part.payload for part in scan(content) if isinstance(part, Frame)]


def gaps(content: bytes) -> list[bytes]:
    """What lies between them."""
    return [content[part.start : part.end] for part in scan(content) if isinstance(part, Gap)]


@given(anything, st.integers(0, 40))
def test_what_goes_in_comes_out(payloads: list[bytes], zeros: int) -> None:
    content = b"".join(map(pack, payloads)) + bytes(zeros)
    assert found(content) == payloads
    assert gaps(content) == []


@given(anything)
def test_offsets_lead_from_frame_to_frame(payloads: list[bytes]) -> None:
    content = b"".join(map(pack, payloads))
    at = 0
    for part in scan(content):
        assert part.start == at
        assert isinstance(part, Frame)
        assert unpack(content, at) == part
        at = part.end
    assert at == len(content)


@given(anything, st.data())
def test_reading_may_begin_at_any_frame(payloads: list[bytes], data: st.DataObject) -> None:
    skipped = data.draw(st.integers(0, len(payloads)))
    start = len(b"".join(map(pack, payloads[:skipped])))
    parts = list(scan(b"".join(map(pack, payloads)), start))
    assert [part.payload for part in parts if isinstance(part, Frame)] == payloads[skipped:]


@given(at_least_one, st.integers(0, 40), st.data())
def test_a_torn_last_frame_costs_only_itself(payloads: list[bytes], zeros: int, data: st.DataObject) -> None:
    whole, last = b"".join(map(pack, payloads[:-1])), pack(payloads[-1])
    torn = last[: data.draw(st.integers(1, len(last) - 1))]
    assert found(whole + torn + bytes(zeros)) == payloads[:-1]
    assert [gap.rstrip(b"\0") for gap in gaps(whole + torn + bytes(zeros))] == [torn.rstrip(b"\0")]


@given(at_least_one, st.binary(min_size=1, max_size=60), st.data())
def test_garbage_between_frames_costs_no_frame(payloads: list[bytes], garbage: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(payloads)))
    frames = list(map(pack, payloads))
    content = b"".join([*frames[:at], garbage, *frames[at:]])
    assert found(content) == payloads
    assert gaps(content) == ([garbage] if garbage.strip(b"\0") or at < len(payloads) else [])


@given(at_least_one, st.data())
def test_a_damaged_byte_costs_one_frame(payloads: list[bytes], data: st.DataObject) -> None:
    content = bytearray(b"".join(map(pack, payloads)))
    at = data.draw(st.integers(0, len(content) - 1))
    hit = next(index for index in range(len(payloads)) if at < len(b"".join(map(pack, payloads[: index + 1]))))
    content[at] ^= data.draw(st.integers(1, 255))
    assert found(bytes(content)) == payloads[:hit] + payloads[hit + 1 :]
    assert gaps(bytes(content)) != []


@given(st.binary(max_size=300))
def test_any_bytes_can_be_scanned(content: bytes) -> None:
    parts = list(scan(content))
    ends = [0, *(part.end for part in parts)]
    assert [part.start for part in parts] == ends[:-1]
    assert not content[ends[-1] :].strip(b"\0")


def test_a_length_beyond_all_frames_is_no_frame() -> None:
    assert unpack(MARK + b"\xff\xff\xff\xff" + b"\0\0\0\0" + b"x" * 100) is None


def test_a_payload_has_a_limit() -> None:
    assert found(pack(b"x" * MAX_PAYLOAD_BYTES)) == [b"x" * MAX_PAYLOAD_BYTES]
    with pytest.raises(ValueError, match="a frame takes"):
        pack(b"x" * (MAX_PAYLOAD_BYTES + 1))


def test_no_json_text_holds_a_mark() -> None:
    assert MARK[0] == 0xFF
    with pytest.raises(UnicodeDecodeError):
        MARK.decode()
