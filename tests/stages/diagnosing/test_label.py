"""What a person says of a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.clock import now
from dspy_reflex.errors import ReviewError, TaxonomyError
from dspy_reflex.records.diagnosis import PERSON
from dspy_reflex.stages.diagnosing.label import label
from dspy_reflex.stages.proposing.waiting import find_waiting
from dspy_reflex.stages.reviewing.review import Act
from dspy_reflex.store import audit, diagnoses, outcomes
from dspy_reflex.store.counts import count
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.store import Store
from tests.runtime.programs import HOUSE
from tests.stages.loop import known, settings_for
from tests.store.events import PROGRAM, diagnosed, event

ANN = Act("ann", "the pipe was dry")


def test_a_persons_word_is_the_current_diagnosis(store: Store) -> None:
    """With its line in the trail and the counts that follow."""
    (one,) = known(store, 1, said={"evidence": ("429",)})
    said = label(store, one, "blockage", ANN, HOUSE.labels)
    with store.read() as connection:
        assert diagnoses.current(connection, [one]) == {one: said}
        (line,) = audit.trail(connection, one)
        assert count(connection).causes == {"blockage": 1}
    assert (said.program, said.model, said.confidence, said.needs_review) == (PERSON, "ann", 1.0, False)
    assert (said.symptom, said.evidence, said.reasoning) == ("timeout", (), "the pipe was dry")
    assert (line.actor, line.action, line.reason) == ("ann", "label", "leak to blockage: the pipe was dry")


def test_who_agrees_keeps_the_evidence(store: Store) -> None:
    (one,) = known(store, 1, said={"evidence": ("429",)})
    assert label(store, one, "leak", ANN, HOUSE.labels).evidence == ("429",)


def test_a_failure_without_a_diagnosis_gets_its_symptom(store: Store) -> None:
    told = event(actual_outcome="POST /mail timed out after 30 s")
    with store.write() as connection:
        outcomes.take_in(connection, [told])
    said = label(store, told["id"], "leak", ANN, HOUSE.labels)
    assert (said.symptom, said.signature) == ("timeout", "post <path> timed out after <num> s")


def test_no_program_says_otherwise_afterwards(store: Store) -> None:
    """Neither this version nor the next one."""
    (one,) = known(store, 1)
    label(store, one, "blockage", ANN, HOUSE.labels)
    with store.write() as connection:
        assert diagnoses.undiagnosed(connection, "root_cause@ffffffffffff") == []
        failure = outcomes.failure(connection, one)
        assert failure
        diagnoses.add(connection, [Diagnosed(failure, diagnosed(failure, "leak").diagnosis)])
        assert diagnoses.current(connection, [one])[one].root_cause == "blockage"
        assert diagnoses.undiagnosed(connection, PROGRAM) == []


def test_an_unsure_failure_counts_once_a_person_has_spoken(store: Store, tmp_path: Path) -> None:
    ids = known(store, 2, said={"needs_review": True}, at=now())
    for one in ids:
        label(store, one, "leak", ANN, HOUSE.labels)
    assert [len(each.failures) for each in find_waiting(store, settings_for(tmp_path)).waiting] == [2]


def test_what_cannot_be_said_is_refused(store: Store) -> None:
    (one,) = known(store, 1)
    with pytest.raises(TaxonomyError, match="'rust' is no root cause; it is one of leak, blockage"):
        label(store, one, "rust", ANN, HOUSE.labels)
    with pytest.raises(ReviewError, match="no such failure"):
        label(store, "evt_none", "leak", ANN, HOUSE.labels)
    with pytest.raises(ReviewError, match="is no person"):
        label(store, one, "leak", Act("policy:fast"), HOUSE.labels)
