"""Cue sheets: text that people and the learner both read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.lm.offline.cues import (
    HEADING,
    SMALLEST_WEIGHTS,
    mine,
    read_sheets,
    vocabulary,
    without_sheets,
    write_sheet,
)
from dspy_reflex.runtime.lm.offline.features import OBSERVATIONS, features_of
from dspy_reflex.runtime.lm.offline.learner import Linear, unit_vector
from dspy_reflex.taxonomies.load import load_taxonomy, presets
from tests.runtime.lm.offline.prompts import CASES, LEARNT
from tests.runtime.programs import HOUSE, any_text

LABELS = [label for _, label in CASES]
FEATURES = [features_of(inputs) for inputs, _ in CASES]

names = st.from_regex(r"[a-z]{1,6}( [a-z]{1,6})?|[a-z_]{1,6}:[a-z]{1,6}", fullmatch=True) | st.sampled_from(
    [f"<{shown}>" for shown in OBSERVATIONS]
)
weights = st.integers(-99, 99).filter(bool).map(lambda tenths: tenths / 10)
label_names = st.sampled_from(
    [*HOUSE.labels, *(label for name in presets() for label in load_taxonomy(name).labels), "a/b: c"]
)
sheets = st.dictionaries(label_names, st.dictionaries(names, weights, max_size=5), min_size=1, max_size=4).flatmap(
    lambda found: st.fixed_dictionaries({label: st.integers(-300, 300).map(lambda n: n / 100) for label in found}).map(
        lambda base: Linear(found, base)
    )
)


def plain(sheet: Linear) -> tuple[Mapping[str, Mapping[str, float]], Mapping[str, float]]:
    """Weights and bases as dictionaries."""
    return {label: dict(found) for label, found in sheet.weights.items()}, dict(sheet.base)


@given(sheets)
def test_a_sheet_is_read_back_as_it_was_written(sheet: Linear) -> None:
    assert [plain(found) for found in read_sheets(write_sheet(sheet))] == [plain(sheet)]


@given(sheets, sheets)
def test_two_sheets_one_under_the_other_are_two(one: Linear, other: Linear) -> None:
    """As the prompt model's observations hold them."""
    text = f"{write_sheet(one)}\n{write_sheet(other)}"
    assert [plain(found) for found in read_sheets(text)] == [plain(one), plain(other)]


@given(sheets, st.lists(st.from_regex(r"[A-Z][a-z ]{0,10}\.", fullmatch=True), min_size=1, max_size=3))
def test_a_sheet_is_found_between_other_lines_and_taken_out(sheet: Linear, lines: list[str]) -> None:
    around = "\n".join(lines)
    text = f"{around}\n\n{write_sheet(sheet)}\n\n{around}"
    assert [plain(found) for found in read_sheets(text)] == [plain(sheet)]
    assert without_sheets(text).replace("\n", "") == (around + around).replace("\n", "")
    assert read_sheets(without_sheets(text)) == []


@given(any_text, sheets)
def test_no_text_is_too_odd_to_read(text: str, sheet: Linear) -> None:
    read_sheets(f"{text}\n{HEADING}\n{text}\n{write_sheet(sheet)}\n- x [1.0]: {text}")
    without_sheets(f"{HEADING}\n{text}")


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("- a [+0.50]: ", {}),
        ("- a [0.5]: one +0.1", {"one": 0.1}),
        ("- a [0.5]: two words -0.1; field:word +0.2", {"two words": -0.1, "field:word": 0.2}),
        ("- a [0.5]: one 0.1; two +0.2", {"two": 0.2}),
        ("- a [0.5]: one +0.1 and more; two +0.2", {"two": 0.2}),
        ("  - a [0.5]: one +0.1  ", {"one": 0.1}),
    ],
)
def test_what_a_line_means(line: str, items: dict[str, float]) -> None:
    assert plain(read_sheets(f"{HEADING}\n{line}")[0])[0] == {"a": items}


@pytest.mark.parametrize(
    "text", ["", "- a [0.5]: one +0.1", HEADING, f"{HEADING}\n\n- a [0.5]: one +0.1", f"{HEADING}\n- a: x"]
)
def test_without_its_heading_or_its_lines_there_is_no_sheet(text: str) -> None:
    assert read_sheets(text) == []


def test_mining_finds_what_tells_the_classes_apart() -> None:
    sheet = mine(FEATURES, LABELS, sorted(set(LABELS)), SMALLEST_WEIGHTS[0])
    for label, word in {
        "leak": "drips",
        "blockage": "clogged",
        "short_circuit": "fuse",
        "cold_room": "heating",
    }.items():
        assert sheet.weights[label][word] > 0
        assert all(sheet.weights[other].get(word, 0) <= 0 for other in set(LABELS) - {label})


def test_mined_cues_score_their_examples_right() -> None:
    """After having been written and read, as the learner does it."""
    sheet = read_sheets(write_sheet(mine(FEATURES, LABELS, sorted(set(LABELS)), 0.1)))[0]
    scores = [sheet.scores(unit_vector(seen, vocabulary(sheet))) for seen in FEATURES]
    best = [max(score, key=score.__getitem__) for score in scores]
    assert sum(map(str.__eq__, best, LABELS)) >= 22


def test_a_longer_sheet_holds_the_shorter_one() -> None:
    long, short = (mine(FEATURES, LABELS, sorted(set(LABELS)), smallest) for smallest in sorted(SMALLEST_WEIGHTS))
    for label, found in short.weights.items():
        assert found.items() <= long.weights[label].items()
    assert sum(map(len, short.weights.values())) < sum(map(len, long.weights.values()))


def test_mining_does_not_depend_on_the_order_in_which_features_were_seen() -> None:
    turned = [Counter(dict(reversed(seen.items()))) for seen in FEATURES]
    classes = sorted(set(LABELS))
    assert write_sheet(mine(turned, LABELS, classes, 0.1)) == write_sheet(mine(FEATURES, LABELS, classes, 0.1))


def test_a_class_without_examples_gets_no_line() -> None:
    features = [features_of(inputs) for inputs, _ in LEARNT]
    sheet = mine(features, [label for _, label in LEARNT], [*HOUSE.labels, "never_seen"], 0.1)
    assert set(sheet.weights) == set(sheet.base) == set(HOUSE.labels)


def test_examples_without_a_word_can_be_mined() -> None:
    sheet = mine([Counter(), Counter()], ["a", "b"], ["a", "b"], 0.1)
    assert sheet.weights == {"a": {}, "b": {}}
