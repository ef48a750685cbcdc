"""Texts and JSON that no database takes are named with their place, and nothing is said of disks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from sqlalchemy import Connection

from dspy_reflex.errors import StoreError
from dspy_reflex.store import outcomes, proposals
from dspy_reflex.store.outcomes import Query
from dspy_reflex.store.store import Store
from dspy_reflex.store.text import to_json, unstorable
from tests.runtime.programs import any_json
from tests.store.events import event

HALF = "half a character; write the whole one or leave it out"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ab\ud800", rf"character 3 is \ud800, {HALF}"),
        ({"messages": ["fine", {"content": "\udfff"}]}, rf"messages[1].content: character 1 is \udfff, {HALF}"),
        ({"a b": {"\ud800": 1}}, rf"['a b']['\ud800']: character 1 is \ud800, {HALF}"),
        ({"n": [1, 2**64]}, "n[1]: a number of more than 64 bits; write it as text"),
        ([-(2**63) - 1, "\ud800"], "[0]: a number of more than 64 bits; write it as text"),
    ],
)
def test_what_cannot_be_kept_is_named_with_its_place(value: Any, said: str) -> None:
    assert unstorable(value) == said
    with pytest.raises(StoreError) as caught:
        to_json(value)
    assert said in str(caught.value)


def test_what_is_nested_too_deeply_is_no_traceback() -> None:
    value: Any = []
    for _ in range(5_000):
        value = [value]
    assert unstorable(value) == "Recursion limit reached; write simpler JSON"


@given(any_json)
def test_only_what_json_refuses_is_complained_of(value: Any) -> None:
    """And every complaint can be printed."""
    why = unstorable(value)
    why.encode()
    try:
        orjson.dumps(value)
    except TypeError:
        assert why.endswith((HALF, "write it as text"))
    else:
        assert why == ""


@pytest.mark.parametrize("odd", ["a\udcffb", "\ud800"])
def test_ids_and_words_that_hold_half_a_character_are_refused_in_a_sentence(store: Store, odd: str) -> None:
    """As they are where a command line is not UTF-8."""
    looks: list[Callable[[Connection], object]] = [
        lambda connection: proposals.get(connection, odd),
        lambda connection: outcomes.failure(connection, odd),
        lambda connection: outcomes.failures(connection, Query(text=odd)),
    ]
    for look in looks:
        with pytest.raises(StoreError, match="half a character"), store.read() as connection:
            look(connection)


def test_a_value_that_cannot_be_kept_leaves_nothing_and_names_no_disk(store: Store) -> None:
    with pytest.raises(StoreError) as caught, store.write() as connection:
        outcomes.take_in(connection, [event(), event(context={"n": "\ud800"})])
    assert str(caught.value) == rf"this cannot be kept: n: character 1 is \ud800, {HALF}"
    with store.read() as connection:
        assert outcomes.failures(connection, Query()) == []
