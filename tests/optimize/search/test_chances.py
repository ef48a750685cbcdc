"""Who is dropped, and who is thought to go on: the one is decided, the other only saves time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.optimize.search.chances import is_dropped, is_promising

ROWS, FIRST = 72, 12
GAPS = st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), min_size=2, max_size=60)


@pytest.mark.parametrize(
    ("gaps", "dropped"),
    [
        ([0.0] * 35, False),
        ([0.0] * 36, True),
        ([0.0] * 35 + [1.0], False),
        ([-1.0] + [0.0] * 11, False),  # exactly one standard error
        ([-1.0, -1.0] + [0.0] * 10, True),
        ([-1.0, -1.0, 1.0] + [0.0] * 9, False),
        ([1.0] * 12, False),
    ],
)
def test_one_is_dropped_when_it_lies_behind_or_is_just_the_same(gaps: list[float], dropped: bool) -> None:
    """By a standard error; on half of val."""
    assert is_dropped(gaps, ROWS) is dropped


@given(GAPS)
def test_in_its_first_block_one_is_promising_that_does_as_well_as_the_leader(gaps: list[float]) -> None:
    """Later it is enough not to lie behind."""
    held = is_promising(gaps[:FIRST], FIRST, FIRST, ROWS)
    assert held is (sum(gaps[:FIRST]) >= 0)
    if len(gaps) > FIRST and any(gaps):
        assert is_promising(gaps, FIRST, len(gaps), ROWS) is (sum(gaps) >= 0 or not is_dropped(gaps, ROWS))


@given(GAPS)
def test_who_would_be_dropped_as_it_stands_is_not_promising(gaps: list[float]) -> None:
    """So nothing is begun in vain unless the rows in between change the picture."""
    if is_dropped(gaps, ROWS):
        assert not is_promising(gaps, FIRST, len(gaps), ROWS)


def test_one_that_will_be_just_the_same_on_half_of_val_is_not_promising() -> None:
    """It is known before those rows are answered."""
    assert is_promising([0.0] * 20, FIRST, 24, ROWS)
    assert not is_promising([0.0] * 24, FIRST, 36, ROWS)
    assert is_promising([*[0.0] * 23, 1.0], FIRST, 36, ROWS)
