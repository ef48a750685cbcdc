"""Secrets and personal data go, everything else stays, and redacting twice is redacting once."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn
from stdnum.iso7064 import mod_97_10

from dspy_reflex.redaction.redact import redact, redact_value
from dspy_reflex.redaction.table import TABLE
from tests.corpora.secrets import BEYOND_SHAPES, LOOK_ALIKES, SECRETS, Planted
from tests.redaction.events import EVENT, pieces

MEGABYTE = 1_000_000
HOSTILE = {
    "at signs": "a@",
    "dots": "a.",
    "dashes and an at sign": "-a",
    "digits": "4",
    "digits in groups": "4111 ",
    "plus and digits": "+49 30 ",
    "capitals": "DE12 ",
    "jwt heads": "eyJ",
    "jwt heads with dashes": "-eyJ",
    "key heads": "sk-",
    "token heads": "ghp_",
    "pem heads": "-----BEGIN " + "PRIVATE KEY-----",
    "pem heads with bodies": "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkq",
    "url heads": "a://",
    "url heads with users": "ab://cd:ef",
    "passwords": "password=",
    "passwords in open quotes": 'password="',
    "passwords and backslashes": 'password="\\',
    "backslashes": "password=\\",
    "tokens": "token: ",
    "curls": "curl -u ",
    "curls without end": "curl ",
    "bearers": "bearer a",
    "cookies": "cookie: a=",
    "authorizations": "authorization:",
}


@pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.kind)
def test_a_secret_is_gone_and_its_kind_is_said(planted: Planted) -> None:
    clean, counts = redact(planted.text)
    assert planted.secret not in clean
    assert set(counts) <= {kind.name for kind in TABLE}
    assert set(counts) & set(planted.kind.split("|"))
    assert any(f"[redacted:{kind}]" in clean for kind in planted.kind.split("|"))


@pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.kind)
def test_no_half_of_a_secret_is_left(planted: Planted) -> None:
    """Twelve characters in a row would be enough to find it by."""
    clean = redact(planted.text)[0]
    assert not any(planted.secret[i : i + 12] in clean for i in range(max(1, len(planted.secret) - 11)))


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize("planted", BEYOND_SHAPES, ids=lambda planted: planted.text[:12])
def test_what_has_neither_shape_nor_name_is_not_found(planted: Planted) -> None:
    """Said here so that nobody takes redaction for more than it is."""
    assert planted.secret in redact(planted.text)[0]


def test_there_are_enough_of_each() -> None:
    assert len(SECRETS) >= 60
    assert len(LOOK_ALIKES) >= 60
    assert {kind.name for kind in TABLE} <= {name for each in SECRETS for name in each.kind.split("|")}


@given(pieces)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, {})


_leaf = st.one_of(pieces, st.none(), st.integers(), st.booleans())
_values = st.recursive(
    _leaf, lambda one: st.lists(one, max_size=3) | st.dictionaries(pieces, one, max_size=3), max_leaves=6
)


@given(_values)
def test_a_value_keeps_its_form(value: Any) -> None:
    clean, counts = redact_value(value)
    assert shape(clean) == shape(value) or counts
    assert redact_value(clean) == (clean, {})


def shape(value: Any) -> Any:
    """Types and sizes."""
    if isinstance(value, dict):
        return ["dict", *map(shape, value.values())]
    return ["list", *map(shape, value)] if isinstance(value, list) else type(value).__name__


def test_keys_are_redacted_and_none_is_lost() -> None:
    clean, counts = redact_value({"jane@acme.io": 1, "joe@acme.io": 2, "ann@acme.io": [3]})
    assert clean == {"[redacted:email]": 1, "[redacted:email] (2)": 2, "[redacted:email] (3)": [3]}
    assert counts == {"email": 3}


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("password", "letmein", "password"),
        ("DB_PASSWORD", "x1", "password"),
        ("password", 123456, "password"),
        ("userPwd", "abc def", "password"),
        ("api_key", "abcd1234", "secret"),
        ("x-api-key", "abcd1234", "secret"),
        ("accessToken", "abcd1234", "secret"),
        ("client_secret", "abcd-1234", "secret"),
        ("Authorization", "Basic abc", "authorization"),
        ("Set-Cookie", "sid=1", "authorization"),
        ("password", None, ""),
        ("password", "", ""),
        ("password", "<redacted>", ""),
        ("password", True, ""),
        ("token", 512, ""),
        ("token", "identifier", ""),
        ("tokens", "abcd1234", ""),
        ("next_page_token", "abcd1234", ""),
        ("secret_name", "prod/db1", ""),
        ("key", "abcd1234", ""),
    ],
)
def test_a_value_goes_by_the_name_of_its_key(key: str, value: Any, kind: str) -> None:
    clean, counts = redact_value({"a": [{key: value, "b": "c"}]})
    assert clean == {"a": [{key: f"[redacted:{kind}]" if kind else value, "b": "c"}]}
    assert counts == ({kind: 1} if kind else {})


def test_a_card_number_without_quotes_goes_too() -> None:
    assert redact_value({"pan": 4111111111111111, "n": 4111111111111112})[0] == {
        "pan": "[redacted:card_number]",
        "n": 4111111111111112,
    }


def test_an_event_without_secrets_comes_back_as_it_is() -> None:
    assert redact_value(EVENT) == (EVENT, {})


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("end", ["@a.io", "\n-----END"])
def test_a_megabyte_costs_no_more_than_its_length(part: str, end: str) -> None:
    """Four times the text may cost four times the time, and some; sixteen times would be a way to stop the agent."""
    quarter, whole = (seconds(part * (size // len(part)) + end) for size in (MEGABYTE // 40, MEGABYTE // 10))
    assert whole < 10 * quarter + 0.05


def seconds(text: str) -> float:
    """What redacting takes, the best of two."""
    times: list[float] = []
    for _ in range(2):
        started = time.process_time()
        redact(text)
        times.append(time.process_time() - started)
    return min(times)


def test_a_second_opinion_finds_nothing_that_is_left() -> None:
    """detect-secrets, without the detectors that guess; it does find secrets in the texts as they were."""
    pytest.importorskip("detect_secrets", reason="needs the compile extra")
    from dspy_reflex.evalset.checks.private import second_opinion

    scan = second_opinion()
    assert sum(bool(scan(each.text)) for each in SECRETS) > 15
    assert [each.kind for each in SECRETS if scan(redact(each.text)[0])] == []


@given(st.from_regex(r"[3-6][0-9]{13,18}", fullmatch=True))
def test_a_card_has_the_right_check_digit(number: str) -> None:
    """By another implementation of Luhn's formula."""
    assert not redact(number)[1] or luhn.is_valid(number)


@given(
    st.from_regex(r"DE[0-9]{20}|GB[0-9]{2}[A-Z]{4}[0-9]{14}|FR[0-9]{12}[A-Z0-9]{11}[0-9]{2}", fullmatch=True),
    st.booleans(),
)
def test_an_iban_has_the_right_check_digits(number: str, right: bool) -> None:
    """By another implementation of ISO 7064."""
    if right:
        number = number[:2] + mod_97_10.calc_check_digits(number[4:] + number[:2]) + number[4:]
    assert bool(redact(number)[1].get("iban")) == mod_97_10.is_valid(number[4:] + number[:4])
