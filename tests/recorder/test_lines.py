"""Lines come back as they went in; what is torn stays alone on its line."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.recorder.frames import Frame, Gap
from dspy_reflex.recorder.lines import pack, scan

payloads_of_json = st.lists(st.text(max_size=30).map(lambda text: json.dumps(text).encode()), max_size=8)


@given(payloads_of_json)
def test_what_goes_in_comes_out(payloads: list[bytes]) -> None:
    parts = list(scan(b"".join(map(pack, payloads))))
    assert [part.payload for part in parts if isinstance(part, Frame)] == payloads
    assert all(isinstance(part, Frame) for part in parts)


@given(payloads_of_json, st.binary(max_size=30), payloads_of_json)
def test_what_was_torn_swallows_no_neighbour(before: list[bytes], torn: bytes, after: list[bytes]) -> None:
    content = b"".join(map(pack, before)) + torn + b"".join(map(pack, after))
    lines = [part.payload for part in scan(content) if isinstance(part, Frame)]
    assert lines[: len(before)] == before
    assert lines[len(lines) - len(after) :] == after


def test_a_last_line_without_its_end_is_a_gap() -> None:
    assert list(scan(b'{"a":1}\n{"b"')) == [Frame(b'{"a":1}', 0, 8), Gap(8, 12)]


def test_lines_of_other_systems_and_empty_ones() -> None:
    assert [part.payload for part in scan(b"\r\n1\r\n\n \n2\n") if isinstance(part, Frame)] == [b"1", b"2"]
