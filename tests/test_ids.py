"""Identifiers are ULIDs that sort as they were made."""

from __future__ import annotations

import re
import time

from dspy_reflex.ids import new_id

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ULID = re.compile(f"[0-7][{DIGITS}]{{25}}")


def milliseconds(ulid: str) -> int:
    """What its first ten characters say, as the specification has it."""
    total = 0
    for character in ulid[:10]:
        total = total * 32 + DIGITS.index(character)
    return total


def test_an_identifier_is_a_prefix_and_a_ulid_of_now() -> None:
    before = time.time_ns() // 1_000_000
    prefix, _, ulid = new_id("evt").partition("_")
    assert prefix == "evt"
    assert ULID.fullmatch(ulid)
    assert before <= milliseconds(ulid) <= time.time_ns() // 1_000_000


def test_identifiers_sort_as_they_were_made_also_within_a_millisecond() -> None:
    made: list[str] = []
    for _ in range(2000):
        made.append(new_id("evt"))
        end = time.time_ns() + 1000
        while time.time_ns() < end:  # clocks tick once in a while
            pass
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert len({milliseconds(each[4:]) for each in made}) < len(made) / 2
