"""Splits never divide a unit, keep the mix of labels, and are the same every time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.split import folds, split_rows
from tests.evalset.rows import row

Rows = list[LabelledFailure]


@st.composite
def labelled_rows(draw: st.DrawFn) -> Rows:
    """Two to forty rows of up to three labels in at least two units."""
    spec = draw(st.lists(st.tuples(st.sampled_from("rgb"), st.integers(0, 12)), min_size=2, max_size=40))
    assume(len({unit for _, unit in spec}) > 1)
    return [row(number, cause, family=f"fam{unit}") for number, (cause, unit) in enumerate(spec)]


@given(labelled_rows(), st.sampled_from([0.2, 0.35, 0.5]), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_a_split_is_a_partition_that_divides_no_unit(rows: Rows, val_share: float, seed: int) -> None:
    """Whatever the rows are; and neither side is empty."""
    train, val = split_rows(rows, val_share=val_share, seed=seed)
    assert sorted(item.id for item in train + val) == sorted(item.id for item in rows)
    assert not {item.unit for item in train} & {item.unit for item in val}
    assert train
    assert val
    assert (train, val) == split_rows(rows, val_share=val_share, seed=seed)


@given(labelled_rows(), st.integers(2, 8))
@settings(max_examples=100, deadline=None)
def test_folds_hold_every_row_out_once_and_divide_no_unit(rows: Rows, k: int) -> None:
    """Whatever the rows are; and neither side is empty."""
    pairs = folds(rows, k, seed=1)
    assert sorted(item.id for _, held in pairs for item in held) == sorted(item.id for item in rows)
    for train, held in pairs:
        assert train
        assert held
        assert not {item.unit for item in train} & {item.unit for item in held}
        assert len(train) + len(held) == len(rows)


def test_both_sides_have_the_mix_of_labels() -> None:
    """20 rows a label in families of two: 13 and 7, within a family."""
    rows = [row(n, cause, family=f"{cause}{n % 10}") for cause in ("red", "green", "blue") for n in range(20)]
    _, val = split_rows(rows, seed=3)
    assert all(6 <= count <= 8 for count in Counter(item.root_cause for item in val).values())
    assert len(Counter(item.root_cause for item in val)) == 3


@pytest.mark.parametrize(("share", "size"), [(0.2, 4), (0.4, 8), (0.5, 10)])
def test_the_share_is_met(share: float, size: int) -> None:
    """The fraction is chosen by the share and not the other way round."""
    _, val = split_rows([row(n) for n in range(20)], val_share=share)
    assert len(val) == size


def test_a_label_that_one_unit_has_goes_to_train() -> None:
    """In ten rows, too: what is in val alone cannot be learnt."""
    rows = [row(n, cause) for n, cause in enumerate(["red"] * 4 + ["green"] * 4 + ["blue", "grey"])]
    for seed in range(5):
        train, val = split_rows(rows, seed=seed)
        assert {"blue", "grey"} <= {item.root_cause for item in train}
        assert {item.root_cause for item in val} == {"red", "green"}


def test_another_seed_gives_another_split() -> None:
    """Otherwise the seed would be decoration."""
    rows = [row(n) for n in range(20)]
    assert split_rows(rows, seed=0) != split_rows(rows, seed=1)


def test_rows_without_a_root_cause_are_left_out() -> None:
    """They belong to splits of their own."""
    train, val = split_rows([row(1), row(2), row(3, None)])
    assert sorted(item.id for item in train + val) == ["f1", "f2"]


def test_what_cannot_be_split_is_said() -> None:
    """One unit, one row, one fold."""
    with pytest.raises(DatasetError, match="all 3 rows belong to 'fam' and cannot be split"):
        split_rows([row(n, family="fam") for n in range(3)])
    with pytest.raises(DatasetError, match="1 labelled failures cannot be split"):
        folds([row(1)], 3)
    with pytest.raises(DatasetError, match="needs at least 2"):
        folds([row(1), row(2)], 1)


def test_labels_of_one_unit_stay_in_train_even_where_most_labels_are_such() -> None:
    """No deal of these rows to folds would keep them together by chance."""
    rows = [row(n, cause) for n, cause in enumerate(["red"] * 3 + [f"rare{n}" for n in range(7)])]
    for seed in range(5):
        _, val = split_rows(rows, seed=seed)
        assert {item.root_cause for item in val} == {"red"}
