"""What is noticed in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.lm.offline.features import OBSERVATIONS, SHOWN_BY, TAIL_CHARS, features_of, observed, words_of
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.runtime.programs import any_text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HTTP 503, twice!", ["http", "503", "twice"]),
        ("2024 12 7 rows, 0 hits", ["rows", "0", "hits"]),
        ("snake_case camelCase x2", ["snake", "case", "camelcase", "x2"]),
        ("\u00dcber caf\u00e9 \u4f60\u597d", ["\u00fcber", "caf\u00e9", "\u4f60\u597d"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_words_pairs_places_and_observations_are_noticed() -> None:
    found = features_of({"task": "book it", "want": "x", "got": "HTTP 503 again", "log": "ok"})
    assert found["503"] == found["http 503"] == found["got:503"] == 1
    assert found["<a service was overloaded or down>"] == 1
    assert found["<got ends on a service was overloaded or down>"] == 1
    assert "task:book" not in found


def test_only_the_end_of_a_field_is_noted_by_place() -> None:
    found = features_of({"log": "first " + "x " * TAIL_CHARS + "last"})
    assert "log:last" in found
    assert "log:first" not in found


@pytest.mark.parametrize(
    ("fields", "noted"),
    [
        ({"task": "3 rows", "got": "total 41", "log": "sum"}, True),
        ({"task": "41 rows", "got": "total 41", "log": "sum"}, False),
        ({"task": "rows", "got": "total 41", "log": "41"}, False),
        ({"got": "total 41"}, False),
    ],
)
def test_a_figure_out_of_nowhere_is_noticed(fields: dict[str, str], noted: bool) -> None:
    assert ("<a figure that stands nowhere else>" in features_of(fields)) is noted


def test_a_repeated_line_is_noticed() -> None:
    line = "GET /orders returned nothing"
    assert "<a line is repeated>" in features_of({"log": f"{line}\nother\n {line}"})
    assert "<a line is repeated>" not in features_of({"log": f"ok\nok\n{line}"})


@given(st.dictionaries(st.sampled_from(["task", "want", "got", "log"]), any_text))
def test_any_text_has_countable_features(fields: dict[str, str]) -> None:
    assert all(name and count > 0 for name, count in features_of(fields).items())


def test_a_word_shows_one_thing() -> None:
    """Else the later line of the table would silently take it from the earlier."""
    listed = [word for words in OBSERVATIONS.values() for word in words.split(", ")]
    assert sorted(listed) == sorted(SHOWN_BY)


def test_every_listed_word_can_be_noticed() -> None:
    """It is made of one or two words, as the learner cuts text into words."""
    assert [word for word in SHOWN_BY if " ".join(words_of(word)) != word or len(words_of(word)) > 2] == []


def test_observations_can_stand_in_a_cue_sheet_and_a_rule_book() -> None:
    """What separates items there does not occur in them."""
    assert all(not set(";:(),<>[]") & set(shown) for shown in OBSERVATIONS)


def test_no_observation_knows_a_label_of_ours() -> None:
    spelt = {name for label in load_taxonomy().labels for name in (label, label.replace("_", " "))}
    assert not spelt & (set(OBSERVATIONS) | set(SHOWN_BY))


def test_what_a_word_shows() -> None:
    assert observed("timeout") == "something timed out"
    assert observed("banana") == ""
