"""Agreement against a published example, and where the formulas have no answer."""

from __future__ import annotations

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.agreement import agreement
from dspy_reflex.evalset.labelled import LabelledFailure, Vote
from tests.evalset.rows import row


def voted(number: int, **said: str | None) -> LabelledFailure:
    """A row with one vote for each name."""
    votes = tuple(Vote(annotator=name, root_cause=cause) for name, cause in said.items())
    return row(number, votes=votes)


def test_kappa_of_the_textbook_table() -> None:
    """20 and 15 agreed, 5 and 10 not: raw .70, kappa .40 (the grant example that most texts on Cohen's kappa use)."""
    pairs = [("red", "red")] * 20 + [("red", "green")] * 5 + [("green", "red")] * 10 + [("green", "green")] * 15
    found = agreement([voted(n, ann=one, ben=other) for n, (one, other) in enumerate(pairs)])
    assert (found.annotators, found.n) == (("ann", "ben"), 50)
    assert (found.raw, found.kappa) == (pytest.approx(0.7), pytest.approx(0.4))
    assert found.kappa_of == {"green": pytest.approx(0.4), "red": pytest.approx(0.4)}
    assert found.interval[0] < 0.4 < found.interval[1]
    # alpha: 1 - (n - 1) * observed / expected = 1 - 99 * 30 / (2 * 55 * 45)
    assert found.alpha == pytest.approx(1 - 99 * 30 / (2 * 55 * 45))
    assert found.confusions == (("green", "red", 15),)


def test_blaming_nothing_is_a_label_of_its_own() -> None:
    """Two people who both say `cannot be decided` agree."""
    found = agreement([voted(1, ann=None, ben=None), voted(2, ann="red", ben="red"), voted(3, ann="red", ben=None)])
    assert found.raw == pytest.approx(2 / 3)
    assert "(nothing)" in found.kappa_of


def test_one_label_in_all_is_agreement_and_no_division_by_zero() -> None:
    """Both said the same, every time."""
    found = agreement([voted(1, ann="red", ben="red"), voted(2, ann="red", ben="red")])
    assert (found.kappa, found.alpha) == (1.0, 1.0)


def test_second_choices_count_for_first_or_second() -> None:
    """A close call is not a contradiction."""
    votes = (Vote(annotator="ann", root_cause="red", second="blue"), Vote(annotator="ben", root_cause="blue"))
    assert agreement([row(1, votes=votes), voted(2, ann="red", ben="red")]).first_or_second == 1.0


def test_no_second_choice_is_no_choice_of_nothing() -> None:
    """Or whoever blames nothing would agree with everybody."""
    assert agreement([voted(1, ann=None, ben="red"), voted(2, ann="red", ben="green")]).first_or_second == 0.0


def test_the_two_with_most_votes_in_common_are_compared() -> None:
    """Unless names are given."""
    rows = [voted(1, ann="red", ben="red", cy="red"), voted(2, ben="red", cy="green"), voted(3, ann="red")]
    assert agreement(rows).annotators == ("ben", "cy")
    assert agreement(rows, ("ann", "ben")).n == 1


@pytest.mark.parametrize("rows", [[row(1)], [voted(1, ann="red"), voted(2, ben="red")]])
def test_without_two_votes_on_one_failure_there_is_none(rows: list[LabelledFailure]) -> None:
    """The message says how votes are made."""
    with pytest.raises(DatasetError, match="data label"):
        agreement(rows)
