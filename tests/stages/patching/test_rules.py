"""Rules in files are listed, retired and merged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from dspy_reflex.clock import now
from dspy_reflex.errors import ReviewError, StoreError
from dspy_reflex.stages.patching.apply import apply
from dspy_reflex.stages.patching.rules import merge, retire, standing_rules
from dspy_reflex.store import audit, proposals
from dspy_reflex.store.store import Store
from tests.stages.approved import RULES, approved, rule_files, state_of, waiting, workspace
from tests.stages.standing import happened


def test_rules_are_listed_with_what_came_of_them(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    first, second = approved(store, tmp_path), approved(store, tmp_path, RULES[1], agent="bot")
    waiting(store, tmp_path, RULES[2])
    assert standing_rules(store, settings) == []
    happened(store, [now() - timedelta(hours=1)] * 3, failed=3)
    apply(store, settings, None, by="ada")
    happened(store, [now()] * 4, failed=2)
    happened(store, [now()], failed=1, agent="bot")
    happened(store, [now()], failed=1, symptom="timeout")
    assert [(one.proposal.id, one.recurred) for one in standing_rules(store, settings)] == [
        (first.id, 2),
        (second.id, 1),
    ]
    assert [one.proposal.id for one in standing_rules(store, settings, ["veya"])] == [first.id]
    assert [one.proposal.id for one in standing_rules(store, settings, ["bot"])] == [second.id]


def test_a_retired_rule_is_out_and_no_lesson(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = approved(store, tmp_path)
    apply(store, settings, None, by="ada")
    (patch,) = retire(store, settings, one.id, by="ben", reason="the tool is gone").patches
    assert (patch.action, rule_files(tmp_path), state_of(store, one.id)) == ("retire", {}, "reverted")
    assert retire(store, settings, one.id, by="ben", reason="again").patches == ()
    with store.read() as connection:
        assert proposals.lessons_on(connection, "tool_failure", "rate_limit") == []
        last = audit.trail(connection, one.id)[-1]
    assert (last.actor, last.action, last.reason) == ("ben", "retire", "the tool is gone")
    with pytest.raises(StoreError, match="is pending, so it is in no file"):
        retire(store, settings, waiting(store, tmp_path).id, by="ben", reason="no")


def test_a_merged_rule_is_proposed_with_all_that_is_behind_the_two(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    first, second = approved(store, tmp_path), approved(store, tmp_path, RULES[1])
    apply(store, settings, None, by="ada")
    before = rule_files(tmp_path)
    merged = merge(store, first.id[:-2], second.id, f"  {RULES[2]}\n", by="ada")
    assert (merged.state, merged.rule, merged.proposal.rule) == ("pending", RULES[2], RULES[2])
    assert merged.proposal.replaces == (first.id, second.id)
    assert (merged.proposal.program, merged.proposal.model) == ("person", "ada")
    assert rule_files(tmp_path) == before
    with store.read() as connection:
        assert proposals.get(connection, merged.id) == merged


def test_what_does_not_belong_together_is_not_merged(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    first, soul = approved(store, tmp_path), approved(store, tmp_path, RULES[1], component="SOUL")
    apply(store, settings, None, by="ada")
    pending = waiting(store, tmp_path, RULES[2])
    for other, why in ((soul, "not of one file"), (pending, "is pending"), (first, "with itself")):
        with pytest.raises(StoreError, match=why):
            merge(store, first.id, other.id, RULES[3], by="ada")
    with pytest.raises(ReviewError, match="nobody is named"):
        merge(store, first.id, soul.id, RULES[3], by="")
    for rule in ("", "x" * 301):
        with pytest.raises(ReviewError, match=f"a rule of {len(rule)} characters"):
            merge(store, first.id, soul.id, rule, by="ada")
