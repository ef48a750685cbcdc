"""A whole set divided: nothing lost, no unit in two splits, the hard ones apart."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.divide import Shares, divide
from dspy_reflex.evalset.labelled import LabelledFailure, Vote
from dspy_reflex.records.failure import Failure
from tests.evalset.rows import row

CAUSES = ("red", "green", "blue")


def many(families: int, text: str = "") -> list[LabelledFailure]:
    """Families of three, one row of each cause; the text gives the cause away unless one is given."""
    return [
        LabelledFailure(
            failure=Failure(id=f"{text}{n}", task=f"{text}t{n}", actual_outcome=text or f"{CAUSES[n % 3]} wall"),
            root_cause=CAUSES[n % 3], family=f"{text}fam{n // 3}", source=f"s{n // 3 % 2}",
        )
        for n in range(families * 3)
    ]  # fmt: skip


@given(st.integers(8, 20), st.sampled_from([0.0, 0.2]), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_every_row_is_in_one_split_and_every_family_too(families: int, hard: float, seed: int) -> None:
    """Whatever the shares; and the same again with the same seed."""
    rows = [*many(families), row(999, None)]
    splits = divide(rows, Shares(0.15, 0.3, hard), seed)
    dealt = [one.id for split in splits.values() for one in split]
    assert sorted(dealt) == sorted(one.id for one in rows if one.root_cause)
    units = Counter(unit for split in splits.values() for unit in {one.unit for one in split})
    assert set(units.values()) == {1}
    assert divide(rows, Shares(0.15, 0.3, hard), seed) == splits
    assert ("test_hard" in splits) == bool(hard)


def test_causes_and_sources_are_spread_evenly() -> None:
    """Or a split would measure where its rows are from."""
    splits = divide(many(40), Shares(0.2, 0.3))
    for name, share in (("test", 0.3), ("val", 0.2)):
        assert Counter(one.source for one in splits[name])["s0"] == pytest.approx(60 * share, abs=6)
        assert Counter(one.root_cause for one in splits[name])["red"] == pytest.approx(40 * share, abs=4)


def test_what_words_do_not_solve_is_hard() -> None:
    """The plain families give their cause away, the murky ones do not."""
    splits = divide([*many(20), *many(5, text="murk")], Shares(0.15, 0.3, 0.2))
    assert {one.family[:4] for one in splits["test_hard"] if one.family} == {"murk"}
    assert Counter(one.root_cause for one in splits["test_hard"]) == dict.fromkeys(CAUSES, 5)


def test_what_annotators_differ_on_is_hard() -> None:
    """Even where words solve it."""
    votes = (Vote(annotator="ann", root_cause="red"), Vote(annotator="ben", root_cause="blue"))
    rows = [one.model_copy(update={"votes": votes}) if one.family == "fam3" else one for one in many(20)]
    assert {one.family for one in divide(rows, Shares(0.15, 0.3, 0.05))["test_hard"]} == {"fam3"}


def test_rows_without_causes_cannot_be_divided() -> None:
    """Nor crash the command."""
    with pytest.raises(DatasetError, match="no row has a root cause"):
        divide([row(1, None), row(2, None)], Shares(0.1, 0.3, 0.1))


def test_a_small_share_of_hard_rows_is_one_family_and_not_none() -> None:
    """An empty split could not be loaded."""
    assert divide(many(8), Shares(0.15, 0.3, 0.01))["test_hard"]


@pytest.mark.parametrize("shares", [Shares(0.5, 0.5), Shares(0.4, 0.4, 0.2), Shares(-0.1, 0.3)])
def test_shares_must_leave_something_to_learn_from(shares: Shares) -> None:
    """Said before anything is computed."""
    with pytest.raises(DatasetError, match="must leave something for train"):
        divide(many(8), shares)
