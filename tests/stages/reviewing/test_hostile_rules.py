"""Failures that want to become rules, and a model that does what they say: nothing of it is filed or approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.errors import ReviewError
from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.stages.reviewing import review
from dspy_reflex.stages.reviewing.review import Act
from dspy_reflex.store.counts import by_state
from dspy_reflex.store.store import Store
from tests.corpora.injections import INJECTIONS, WELL_FORMED
from tests.runtime.programs import ScriptedModel, rule_answer
from tests.stages.loop import asked, known, one_filed, settings_for

TEXTS = tuple(text[:4_000] for text in (*(one.text for one in INJECTIONS), *WELL_FORMED))
"""A recorder clips what is longer."""


def test_a_model_that_repeats_its_failures_gets_no_rule_filed(store: Store, tmp_path: Path) -> None:
    """Word for word what somebody else wrote, be it in ever so good form."""
    for number, text in enumerate(TEXTS):
        known(store, 2, actual_outcome=text, said={"symptom": "other", "signature": f"number {number}"})
    answers = iter(TEXTS)
    done = asked(store, settings_for(tmp_path), ScriptedModel(lambda _: rule_answer(rule=next(answers))))
    assert (len(done.batch.done), done.filed) == (len(TEXTS), ())
    assert len(done.skipped) == len(TEXTS)
    with store.read() as connection:
        assert by_state(connection) == {}


@pytest.mark.parametrize("text", [one.text for one in INJECTIONS if len(one.text) <= MAX_RULE_CHARS], ids=repr)
def test_nobody_can_approve_one_by_an_edit(text: str, hostile: tuple[Store, str]) -> None:
    store, proposal_id = hostile
    with pytest.raises(ReviewError):
        review.edit(store, proposal_id, text, Act("ann"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """A pending proposal in a store that all texts are tried on."""
    folder = tmp_path_factory.mktemp("hostile")
    store = Store(f"sqlite:///{folder / 'store.db'}")
    return store, one_filed(store, settings_for(folder)).id
