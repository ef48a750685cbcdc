"""Votes become labels, whoever votes first and however often somebody changes their mind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.annotate import Annotation, decided, undecided, unlabelled, with_vote
from dspy_reflex.records.failure import Failure
from tests.evalset.rows import row

CAUSE = st.sampled_from(["red", "green", "blue", None])
SAID = st.builds(Annotation, CAUSE, CAUSE, st.sampled_from(["SOUL", "TOOLS", None]), st.just(()))
BLANK = row(1, None)


def test_what_a_file_said_about_a_failure_is_not_shown_to_its_annotators() -> None:
    """But family, group and source go with it, or a split would divide a family."""
    failure = Failure.model_validate(
        {
            "id": "a",
            "task": "t",
            "actual_outcome": "o",
            "root_cause": "red",
            "evidence": ["t"],
            "family": "f",
            "note": 1,
        }
    )
    blank = unlabelled(failure)
    assert (blank.root_cause, blank.evidence, blank.family) == (None, (), "f")
    assert blank.failure.model_extra == {"note": 1}


def test_a_family_that_is_no_name_is_refused_by_its_row() -> None:
    """Not with a traceback."""
    failure = Failure.model_validate({"id": "a", "task": "t", "actual_outcome": "o", "group": ["g"]})
    with pytest.raises(DatasetError, match=r"'a'.*group"):
        unlabelled(failure)


@given(st.lists(st.tuples(st.sampled_from(["ann", "ben", "cy"]), SAID), max_size=8))
def test_an_annotator_has_one_vote_the_last_one(
    votes: list[tuple[str, Annotation]],
) -> None:
    """In any order of any number of annotators."""
    labelled = BLANK
    for name, said in votes:
        labelled = with_vote(labelled, name, said)
    last = dict(votes)
    assert {vote.annotator: vote.root_cause for vote in labelled.votes} == {
        n: said.root_cause for n, said in last.items()
    }
    assert labelled.root_cause == (labelled.votes[0].root_cause if labelled.votes else None)
    assert labelled.root_cause not in labelled.also_acceptable


def test_differing_votes_stay_undecided_until_somebody_says_why() -> None:
    """And what else was voted for stays acceptable."""
    both = with_vote(with_vote(BLANK, "ann", Annotation("red", "blue")), "ben", Annotation("green"))
    assert (both.root_cause, both.also_acceptable) == ("red", ("blue", "green"))
    assert undecided([both, with_vote(BLANK, "ann", Annotation("red"))]) == [both]
    final = decided(both, "green", "ann: the wall is green")
    assert (final.root_cause, final.also_acceptable, final.votes) == ("green", ("red", "blue"), both.votes)
    assert not undecided([final])


def test_a_new_vote_opens_a_decided_row_again() -> None:
    """The reason was given without it."""
    final = decided(with_vote(with_vote(BLANK, "ann", Annotation("red")), "ben", Annotation("green")), "red", "so")
    assert with_vote(final, "cy", Annotation("blue")).adjudication is None


def test_the_second_annotators_quotes_are_added_and_their_component_only_fills_a_gap() -> None:
    """The first annotator's rule file is not overruled by a keystroke."""
    first = with_vote(BLANK, "ann", Annotation("red", None, "SOUL", ("a quote",)))
    both = with_vote(first, "ben", Annotation("red", None, "TOOLS", ("a quote", "another")))
    assert (both.component, both.evidence) == ("SOUL", ("a quote", "another"))
