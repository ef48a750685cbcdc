"""Masked text for grouping."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.mechanism.signature import MAX_CHARS, repeat_of, signature_of

ROOT = Path(__file__).parents[2]
TRACEBACK = 'Traceback (most recent call last):\n  File "{path}", line {line}, in run\n    call({line})\n{error}\n'

PIECES = (
    "db-a|host |404| 12:30|2024-05-03|T12:00:00Z|/etc/x|a/b/c|main.py|10.0.0.3|:80|'|\"|`|x@y.z|https://a.b/c|deadbeef1|"
    "01hx3k7zp9qj8v2m4n6r5t0abc|, | and |may 5|<num>|<|Traceback (most recent call last):|\n  at f|\n|word| |-|\u0130|"
    "0x1f|::1|1e-5"
)
pieces = st.sampled_from(PIECES.split("|"))


@given(st.one_of(st.text(), st.lists(pieces, max_size=15).map("".join), st.lists(pieces, max_size=40).map(" ".join)))
def test_the_signature_of_a_signature_is_itself(text: str) -> None:
    signature = signature_of(text)
    assert signature_of(signature) == signature
    assert len(signature) <= MAX_CHARS
    assert signature == signature.lower().strip()
    assert "\n" not in signature


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("Order 40412 was shipped", "order <num> was shipped"),
        ("Retry 3 of 5 failed", "retry <num> of <num> failed"),
        ("Total: $1,234.56 (-12 %)", "total: $<num> (-<num> %)"),
        ("Missing ids 1, 2, 3 and 4", "missing ids <num>"),
        ("step_12 took 30s", "step_<num> took <num>s"),
        ("Job 550e8400-e29b-41d4-a716-446655440000 gone", "job <id> gone"),
        ("Event 01HX3K7ZP9QJ8V2M4N6R5T0ABC lost", "event <id> lost"),
        ("evt_01hx3k7zp9qj8v2m4n6r5t0abc", "evt_<id>"),
        ("commit 4f2a9c1 broke it, at 0x7FFDE3", "commit <id> broke it, at <id>"),
        ("key sk-proj-AbC123dEfGhIjKlMnOp refused", "key <id> refused"),
        ("at 2024-05-03T12:33:01.123Z it stopped", "at <time> it stopped"),
        ("on 03/05/2024 and May 5, 2024 at 3:04 pm", "on <time> at <time>"),
        ("refused by 10.0.0.3:8080", "refused by <host>"),
        ("fe80::1ff:fe23:4567:890a is down", "<host> is down"),
        ("cannot reach api.shop.example.com:443", "cannot reach <host>"),
        ("GET https://api.x.com/v1/o?id=3 failed", "get <url> failed"),
        ("mail to Bob.Smith@example.com bounced", "mail to <email> bounced"),
        ("open /etc/app/app.conf: denied", "open <path>: denied"),
        ("C:\\Users\\x\\a.txt is missing", "<path> is missing"),
        ("src/app/main.py:42: broken", "<path>:<num>: broken"),
        ("KeyError: 'user_id'", "keyerror: <str>"),
        ("unknown column `total` or \u201csum\u201d", "unknown column <str> or <str>"),
        ('{"error": "slow", "code": 504}', '{"error": <str>, "code": <num>}'),
        ("  Two\n\n lines\t here ", "two lines here"),
        ("", ""),
    ],
)
def test_what_is_masked(text: str, signature: str) -> None:
    assert signature_of(text) == signature


@pytest.mark.parametrize(
    "text",
    [
        "the facade decade was defaced",
        "deadbeef",
        "step-by-step re-run of the e-mail t-test",
        "input/output and/or n/a",
        "torch.nn.functional.relu called",
        "don't trust the user's words",
        "server error on the marked item, maybe",
    ],
)
def test_words_stay_words(text: str) -> None:
    """A word of hex letters is no id, a hyphen makes no host, an apostrophe no quotation."""
    assert signature_of(text) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("connection to db-a failed", "connection to db-b failed"),
        ("cannot reach host db-prod:5432", "cannot reach host db-staging:5432"),
        ("pod web-7f9c8b6d5-x2x9z restarted", "pod web-5d8b7c6f9-q4w8e restarted"),
        ("User 14290 not found", "user 7 not found"),
        ("No file '/a/b.csv'", "No file '/c/d e.csv'"),
    ],
)
def test_repeats_of_one_failure_share_a_signature(one: str, other: str) -> None:
    assert signature_of(one) == signature_of(other)


def test_different_failures_differ() -> None:
    assert signature_of("connection to db-a failed") != signature_of("connection to db-a refused")


def test_a_traceback_counts_by_its_error_and_not_by_its_frames() -> None:
    one = signature_of(TRACEBACK.format(path="/srv/a.py", line=3, error="ValueError: bad id 7"))
    windows = TRACEBACK.format(path="C:/b.py", line=99, error="ValueError: bad id 8").replace("\n", "\r\n")
    other = signature_of(windows)
    third = signature_of(TRACEBACK.format(path="/srv/a.py", line=3, error="KeyError: 7"))
    assert one == other == "valueerror: bad id <num>"
    assert third == "keyerror: <num>"
    assert signature_of("Error: x\n    at f (a.js:3:4)\n    at g (b.js:5:6)") == "error: x"


def test_a_long_text_is_cut_after_a_word() -> None:
    signature = signature_of("crashing " * 100)
    assert signature == " ".join(["crashing"] * 22)


def test_signatures_are_the_same_in_every_process() -> None:
    """Python's own `hash` of a string is not."""
    code = "from dspy_reflex.mechanism.signature import signature_of as s; print(s('Host db-a: 12 x, \"y\" at 1:30'))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


@pytest.mark.parametrize(
    "piece", ["a", " ", '"', "'", "`", ":", "@", "<num> ", "\n ", "\n at", "2024-", TRACEBACK[:37]]
)
def test_megabytes_are_masked_at_once(piece: str) -> None:
    """A quadratic pattern would not come back from this."""
    signature_of(piece * (1_000_000 // len(piece)))


@pytest.mark.parametrize("letter", ["a", "1", "a1", "0."])
@pytest.mark.parametrize("joint", [".", "/", ",", "-", ":", "_", "@", "+"])
def test_endless_chains_are_masked_at_once(letter: str, joint: str) -> None:
    """Hosts, paths, numbers, times and addresses are chains, and each pattern meets the others' too."""
    signature_of(f"{letter}{joint}" * 500_000)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Order 40412 was shipped on May 5", "Order 7 was  shipped on June 12", True),
        ('{"user": "ada@example.com", "n": 3}', '{"user": "bob@example.org", "n": 4}', True),
        ("429 from api.shop.example.com", "503 from api.shop.example.com", False),
        ("returned 0 rows", "returned 12 rows", False),
        ('{"error": "forbidden"}', '{"error": "timeout"}', False),
        ("a " * 500 + "end", "a " * 500 + "other", False),
    ],
)
def test_a_repeat_differs_only_where_that_says_nothing(one: str, other: str, same: bool) -> None:
    assert (repeat_of(one) == repeat_of(other)) is same
