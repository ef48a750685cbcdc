"""What was reviewed comes back as labelled failures that the compile wing takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.config import Settings
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.stages.diagnosing.label import label
from dspy_reflex.stages.reviewing import review
from dspy_reflex.stages.reviewing.examples import reviewed_rows
from dspy_reflex.stages.reviewing.review import Act
from dspy_reflex.store import proposals
from dspy_reflex.store.forget import forget
from dspy_reflex.store.store import Store
from tests.runtime.programs import HOUSE
from tests.stages.loop import RULE, known, one_filed, settings_for

BETTER = "When a pipe drips, stop the water at once and call the owner within five minutes."
ANN = Act("ann", "right")


@pytest.fixture
def rules(tmp_path: Path) -> Settings:
    """Rule files in a folder of their own."""
    return settings_for(tmp_path)


def rows(store: Store) -> dict[str, dict[str, Any]]:
    """What is exported, by id."""
    return {row["id"]: row for row in reviewed_rows(store)}


def test_an_approved_rule_is_an_example_with_each_failure_it_was_made_from(store: Store, rules: Settings) -> None:
    filed = one_filed(store, rules)
    review.edit(store, filed.id, BETTER, ANN)
    found = rows(store)
    assert set(found) == set(filed.proposal.failure_ids)
    for row in found.values():
        assert (row["root_cause"], row["component"], row["reference_rule"]) == ("leak", "TOOLS", BETTER)
        assert (row["votes"], row["source"]) == ([{"annotator": "ann", "root_cause": "leak"}], "review")
        assert row["group"] == filed.id


def test_a_labelled_failure_is_an_example_for_the_classifier(store: Store) -> None:
    one, _ = known(store, 2)
    label(store, one, "blockage", ANN, HOUSE.labels)
    (row,) = reviewed_rows(store)
    assert (row["id"], row["root_cause"], row["votes"]) == (
        one,
        "blockage",
        [{"annotator": "ann", "root_cause": "blockage"}],
    )
    assert "reference_rule" not in row


def test_the_compile_wing_takes_the_rows(store: Store, rules: Settings, tmp_path: Path) -> None:
    """Without a complaint, and each program finds its examples."""
    review.approve(store, one_filed(store, rules).id, ANN)
    (other,) = known(store, 1, "short_circuit")
    label(store, other, "cold_room", Act("ben"), HOUSE.labels)
    file = tmp_path / "reviewed.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in reviewed_rows(store)))
    found = load_evalset(file, HOUSE).rows
    assert [(row.root_cause, row.reference_rule) for row in found] == [
        ("cold_room", None),
        ("leak", RULE),
        ("leak", RULE),
    ]
    assert len({row.unit for row in found}) == 2
    assert len(examples_for("root_cause", found, 0)) == 3
    assert {one.rule for one in examples_for("rule", found, 0)} == {RULE}


def test_pending_rejected_and_reverted_rules_are_no_examples(store: Store, rules: Settings) -> None:
    filed = one_filed(store, rules)
    assert rows(store) == {}
    review.approve(store, filed.id, ANN)
    with store.write() as connection:
        applied = proposals.move(
            connection, proposals.get(connection, filed.id), "applied", actor="ann", action="apply"
        )
    assert len(rows(store)) == 2
    with store.write() as connection:
        proposals.move(connection, applied, "reverted", actor="ann", action="revert")
    assert rows(store) == {}


def test_what_a_policy_approved_is_no_example(store: Store, rules: Settings) -> None:
    """Or a program would learn from itself."""
    filed = one_filed(store, rules)
    with store.write() as connection:
        review.approve_in(connection, filed, Act("policy:fast", policy="fast"))
    assert rows(store) == {}


def test_who_says_another_cause_takes_the_failure_from_the_rule(store: Store, rules: Settings) -> None:
    filed = one_filed(store, rules)
    review.approve(store, filed.id, ANN)
    first, second = filed.proposal.failure_ids
    label(store, first, "blockage", Act("ben"), HOUSE.labels)
    label(store, second, "leak", Act("ben"), HOUSE.labels)
    found = rows(store)
    assert (found[first]["root_cause"], found[first].get("reference_rule")) == ("blockage", None)
    assert (found[second]["reference_rule"], [one["annotator"] for one in found[second]["votes"]]) == (
        RULE,
        ["ben", "ann"],
    )


def test_what_was_forgotten_is_not_exported(store: Store, rules: Settings) -> None:
    filed = one_filed(store, rules)
    review.approve(store, filed.id, ANN)
    gone, left = filed.proposal.failure_ids
    with store.write() as connection:
        forget(connection, gone, actor="ann", reason="asked")
    assert set(rows(store)) == {left}


def test_repeats_of_one_failure_are_never_divided(store: Store) -> None:
    """They have one masked text."""
    ids = known(store, 2, said={"signature": "the same"}) + known(store, 1, said={"signature": "another"})
    for one in ids:
        label(store, one, "leak", ANN, HOUSE.labels)
    groups = [rows(store)[one]["group"] for one in ids]
    assert groups[0] == groups[1] != groups[2]
