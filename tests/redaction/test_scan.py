"""An event that is cleared holds nothing that would be redacted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.redaction.redact import redact, redact_value
from dspy_reflex.redaction.scan import clears, suspects
from dspy_reflex.redaction.table import TABLE
from tests.corpora.secrets import LOOK_ALIKES, SECRETS, Planted
from tests.redaction.events import EVENT, pieces

Writer = Callable[[Any], bytes]
WRITERS: dict[str, Writer] = {
    "orjson": orjson.dumps,
    "json": lambda value: json.dumps(value).encode(),
    "json, not only ASCII": lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"),
    "slashes escaped": lambda value: orjson.dumps(value).replace(b"/", rb"\/"),
    "indented": lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2),
    "a string of JSON in JSON": lambda value: orjson.dumps({"body": json.dumps(value)}),
}


def test_an_ordinary_event_is_cleared() -> None:
    assert clears(orjson.dumps(EVENT))


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("planted", SECRETS, ids=lambda planted: planted.kind)
def test_no_event_with_a_secret_is_cleared(planted: Planted, writer: Writer) -> None:
    """However it is written, and wherever in the event it stands."""
    assert not clears(writer({**EVENT, "context": {"log": ["a", planted.text]}}))
    assert not clears(writer({**EVENT, "context": {planted.text: 1}}))


@given(pieces, st.sampled_from(sorted(WRITERS)))
def test_what_is_cleared_is_not_changed(text: str, writer: str) -> None:
    """The other way round, on texts made of parts of secrets and what stands around them."""
    event = {"actual_outcome": text, "context": {text: [text], "api_key": text, "password": text}}
    try:
        payload = WRITERS[writer](event)
    except (TypeError, UnicodeEncodeError):  # a lone surrogate, which orjson does not write
        return
    if clears(payload):
        assert redact_value(event) == (event, {})


def test_what_json_hides_is_not_cleared() -> None:
    r"""`\u0073k-` is `sk-`: a writer may escape what it likes."""
    planted = next(each for each in SECRETS if each.kind == "openai_key")
    hidden = orjson.dumps(planted.text).replace(b"sk-", rb"\u0073k\u002d")
    assert redact(json.loads(hidden))[1]
    assert not clears(hidden)


def test_signs_are_what_json_writes_as_it_is() -> None:
    """Else an escape could hide one."""
    signs = [sign for kind in TABLE for sign in (*kind.literals, *kind.words, *kind.ends)]
    assert signs
    assert [sign for sign in signs if not sign.isascii() or not sign.isprintable() or set(sign) & set('"\\/')] == []
    assert all(kind.literals or kind.words or kind.ends or kind.digits or kind.plus for kind in TABLE)


def test_every_sign_is_found() -> None:
    """One that was too short to be looked up, or was written otherwise than it is searched for, would never be."""
    for kind in TABLE:
        for sign in (*kind.literals, *kind.words, *kind.ends):
            assert kind in suspects(f"see {sign}1"), sign


def test_most_look_alikes_are_cleared() -> None:
    """The share that need no pattern is what makes the look worth its microseconds."""
    cleared = [text for text in LOOK_ALIKES if clears(orjson.dumps({"actual_outcome": text}))]
    assert len(cleared) > len(LOOK_ALIKES) / 3
