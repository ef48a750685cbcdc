"""Which examples are nearest: an order that is the same everywhere, and files that are trusted only after a check."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import ProgramError
from dspy_reflex.runtime.artifact import Artifact, check, digest_of
from dspy_reflex.runtime.render import render
from dspy_reflex.runtime.retrieve import Index, Retrieval, said, written
from tests.runtime.programs import published

FIELDS = ("task", "context")
LEAD = "For example:\n\n"
BUDGET_S = 0.02


def index(*texts: str, **postings: tuple[tuple[int, int], ...]) -> Index:
    """Examples with these contexts, and what their words count for; `_` in a name is the blank of a pair."""
    words = {word.replace("_", " "): items for word, items in postings.items()}
    return Index(tuple({"task": "t", "context": text} for text in texts), words)


def nearest(of: Index, text: str, k: int = 9) -> list[int]:
    """The examples nearest to a context."""
    return of.nearest({"task": "t", "context": text}, k)


def retrieving(**changed: Any) -> dict[str, Any]:
    """The `retrieval` of an artefact with two examples, with some of it changed."""
    examples = [
        {"id": "a", "values": {"task": "tap", "context": "drips ", "root_cause": "leak"}, "answer": "leak"},
        {"id": "b", "values": {"task": "fuse", "context": "blew", "root_cause": "short_circuit"}, "answer": "short"},
    ]
    known = {"k": 1, "vectorizer": "words-and-pairs/1", "lead": LEAD, "examples": examples, "index": {"blew": "1:30"}}
    return {**known, **changed}


def sealed(retrieval: Any) -> dict[str, Any]:
    """The content of a program file with this `retrieval`."""
    data = {**published().data, "retrieval": retrieval}
    return {**data, "digest": digest_of(data)}


def test_words_and_pairs_are_counted_whatever_their_case_and_not_across_fields() -> None:
    assert said({"task": "Time-out, TIME", "context": "out 503 \u00fcber_all"}) == {
        "time": 2,
        "out": 2,
        "503": 1,
        "\u00fcber": 1,
        "all": 1,
        **{"time out": 1, "out time": 1, "out 503": 1, "503 \u00fcber": 1, "\u00fcber all": 1},
    }


def test_the_example_that_shares_the_weightiest_words_comes_first() -> None:
    three = index("a", "b", "c", tap=((0, 5), (2, 7)), wet=((1, 6), (2, 1)), wet_tap=((1, 9),))
    assert nearest(three, "tap") == [2, 0, 1]
    assert nearest(three, "wet") == [1, 2, 0]
    assert nearest(three, "tap, then wet") == [2, 1, 0]
    assert nearest(three, "wet tap") == [1, 2, 0]
    assert nearest(three, "tap", k=1) == [2]


def test_a_word_said_often_counts_more_but_not_as_often() -> None:
    two = index("a", "b", tap=((0, 10),), wet=((1, 16),))
    assert nearest(two, "tap wet") == [1, 0]
    assert nearest(two, "tap tap wet") == [0, 1]
    assert nearest(index("a", "b", tap=((0, 10),), wet=((1, 31),)), "tap tap tap tap wet") == [1, 0]


def test_equally_near_examples_keep_their_order() -> None:
    assert nearest(index(*"abcdef", tap=((4, 3), (1, 3))), "tap", k=4) == [1, 4, 0, 2]


def test_a_text_that_says_nothing_known_gets_the_first_examples() -> None:
    assert nearest(index(*"abc", tap=((2, 3),)), "?", k=2) == [0, 1]


def test_an_example_with_the_very_same_input_is_left_out() -> None:
    three = index("tap", "tap", "tap drips", tap=((0, 9), (1, 9), (2, 4)))
    assert nearest(three, "tap") == [2]
    assert nearest(three, "tap ") == [0, 1, 2]
    assert three.nearest({"task": "other", "context": "tap"}, 1) == [0]


@given(
    st.dictionaries(
        st.text("abc ", min_size=1),
        st.lists(st.tuples(st.integers(0, 1), st.integers(1, 10**6)), min_size=1).map(tuple),
        max_size=5,
    )
)
def test_an_index_is_read_as_it_was_written(postings: dict[str, tuple[tuple[int, int], ...]]) -> None:
    assert Retrieval.from_json(retrieving(index=written(postings)), FIELDS).index.postings == postings


def test_retrieved_examples_stand_before_the_question() -> None:
    artifact = check(sealed(retrieving()), "file")
    values = {"task": "lamp", "expected_outcome": "on", "actual_outcome": "off", "context": "fuse blew"}
    system, asked, answered, question = render(artifact, values)
    assert system == published().data["messages"][0]
    assert asked == {"role": "user", "content": f"{LEAD}[[ ## task ## ]]\nfuse\n\n[[ ## context ## ]]\nblew"}
    assert answered == {"role": "assistant", "content": "short"}
    assert question == render(published(), values)[-1]
    shown = render(artifact, {**values, "context": "dark"})[1]["content"]
    assert shown == f"{LEAD}[[ ## task ## ]]\ntap\n\n[[ ## context ## ]]\ndrips"  # DSPy takes blanks off the end


def test_a_program_that_retrieves_nothing_says_so() -> None:
    assert published().retrieval is None
    assert published().data["retrieval"] is None


def _without(key: str) -> Callable[[Any], None]:
    return lambda data: data.pop(key)


def _with(key: str, value: Any, *, example: bool = False) -> Callable[[Any], None]:
    return lambda data: (data["examples"][1] if example else data).__setitem__(key, value)


@pytest.mark.parametrize(
    "damage",
    [
        *map(_without, retrieving()),
        *(_with("k", value) for value in (0, -1, True, 1.5, "4", None)),
        *(_with("lead", value) for value in (None, 3)),
        *(_with("examples", value) for value in (None, 3, [3], [{}])),
        *(_with("index", value) for value in (None, "a", ["a"], {"a": 3}, {"a": "x:1"}, {"a": "0"}, {"a": "0:1:2"})),
        *(_with("index", {"a": f"{number}:1"}) for number in (2, -1, 10**6)),
        _with("vectorizer", 3),
        _with("answer", None, example=True),
        _with("values", None, example=True),
        _with("values", {"task": 3}, example=True),
    ],
)
def test_a_damaged_index_is_refused_although_the_digest_is_right(damage: Callable[[Any], None]) -> None:
    check(sealed(retrieving()), "file")
    data = copy.deepcopy(retrieving())
    damage(data)
    with pytest.raises(ProgramError, match="file: the program's parts do not have the form they should have"):
        check(sealed(data), "file")


def test_an_index_of_another_vectorizer_is_refused_by_name() -> None:
    """Its words would be looked up in vain, or mean something else."""
    with pytest.raises(
        ProgramError, match=r"file: it retrieves by 'words/2' and this version by 'words-and-pairs/1'; "
    ):
        check(sealed(retrieving(vectorizer="words/2")), "file")


def _large() -> Index:
    """700 examples and a text of ordinary length, of which many words stand in many examples."""
    words = [f"word{number}" for number in range(300)]
    postings = {word: tuple((row, 1 + row * at % 97) for row in range(at % 7, 700, 7)) for at, word in enumerate(words)}
    return Index(tuple({"task": str(row)} for row in range(700)), postings)


def test_threads_find_the_same() -> None:
    large = _large()
    questions = [{"task": f"word{number} word{number * 7 % 300}"} for number in range(200)]
    alone = [large.nearest(values, 5) for values in questions]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda values: large.nearest(values, 5), questions)) == alone


def test_looking_up_in_700_examples_takes_milliseconds() -> None:
    """Of this thread's own time, and at its best, so that a busy machine does not matter."""
    large = _large()
    values = {"task": " ".join(f"word{number}" for number in range(0, 300, 2))}
    took: list[float] = []
    for _ in range(10):
        started = time.thread_time()
        large.nearest(values, 8)
        took.append(time.thread_time() - started)
    assert min(took) < BUDGET_S


def test_the_index_is_read_once() -> None:
    artifact: Artifact = check(sealed(retrieving()), "file")
    assert artifact.retrieval is artifact.retrieval
