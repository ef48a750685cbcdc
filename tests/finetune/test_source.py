"""Which rows a store gives: what is left out and why, nothing twice, and what belongs together in one split."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.clock import now
from dspy_reflex.errors import DatasetError, StoreError
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.finetune.families import Families
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.lessons import BY_POLICY, EVAL_TRAIN, HELD_OUT, OTHER_CAUSE
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.rows.behave import Shares
from dspy_reflex.finetune.source import CONTRARY, EVEN, NO_CORRECTION, NO_LABEL, SAME, Source
from dspy_reflex.finetune.tables import TrainingRows
from dspy_reflex.runtime.library import bundled as bundled_with
from dspy_reflex.stages.export import guard_for
from dspy_reflex.store.store import Store
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.finetune.taught import OPEN, OTHER, RULE, drawn, failed, known, ruled
from tests.store.events import filed

DATA = bundled_with("datasets") / "failures"
DAY = datetime(2026, 3, 1, tzinfo=UTC)


def left_out(store: Store, plan: Plan | None = None, guard: Guard = OPEN) -> dict[str, int]:
    """Why how much was left out."""
    with store.read() as connection:
        source = Source(connection, plan or Plan(), guard)
        for _ in source:
            pass
        return {why: n for why, n in source.left_out.items() if n}


def row_of(split: str) -> Any:
    """The first row of a split of the bundled eval set."""
    return load_evalset(DATA, load_taxonomy()).split(split)[0]


def test_failures_without_a_correction_are_left_out_and_counted(store: Store) -> None:
    one, other = failed(store, "a", "b")
    ruled(store, RULE, "kept", one, other, correction={one.id: "Waited."})
    assert left_out(store) == {NO_CORRECTION: 1}
    assert left_out(store, Plan(tasks=("classify", "propose"))) == {}


def test_what_a_policy_approved_is_left_out_and_counted(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, "a"), correction="Waited.", policy="sure ones")
    assert drawn(store) == []
    assert left_out(store) == {BY_POLICY: 1}


def test_a_failure_with_another_cause_is_no_example_for_the_rule(store: Store) -> None:
    one, other = failed(store, "a", "b")
    ruled(store, RULE, "kept", one, other, correction="Waited.")
    known(store, other, "context_loss")
    rows = [row for row in drawn(store) if row.task != "classify"]
    assert {row.lineage.failures for row in rows} == {(one.id,)}
    assert left_out(store)[OTHER_CAUSE] == 1


def test_a_cause_that_a_person_named_of_a_rules_failure_is_drawn_once(store: Store) -> None:
    (failure,) = failed(store, "a")
    ruled(store, RULE, "kept", failure)
    known(store, failure, "tool_failure")
    assert len(drawn(store, Plan(tasks=("classify",)))) == 1
    assert left_out(store, Plan(tasks=("classify",))) == {}


def test_causes_that_the_program_does_not_know_are_counted(store: Store) -> None:
    known(store, failed(store, "a")[0], "something else")
    assert left_out(store) == {NO_LABEL: 1}


def test_repeats_are_rows_once(store: Store) -> None:
    failures = failed(store, "a", "a", "a")
    ruled(store, RULE, "kept", *failures, correction="Waited.")
    rows = drawn(store, Plan(tasks=("behave",), shares=Shares(0.0, 0.0)))
    assert [row.kind for row in rows] == ["sft", "preference", "unpaired", "unpaired", "rewarded"]
    assert left_out(store, Plan(tasks=("behave",), shares=Shares(0.0, 0.0))) == {SAME: 10}


def test_a_correction_that_is_what_went_wrong_prefers_nothing(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, "It broke"), correction="It broke")
    rows = drawn(store, Plan(tasks=("behave",)))
    assert [row.kind for row in rows] == ["sft", "unpaired", "rewarded"]
    assert left_out(store, Plan(tasks=("behave",))) == {EVEN: 1, CONTRARY: 1}


def test_a_rule_that_was_approved_and_rejected_is_not_disliked(store: Store) -> None:
    failures = failed(store, "a")
    ruled(store, RULE, "rejected", *failures)
    ruled(store, RULE, "kept", *failures)
    rows = drawn(store, Plan(tasks=("propose",)))
    assert [(row.kind, row.label) for row in rows] == [("sft", None), ("unpaired", True)]


def test_the_same_words_have_the_same_id_whatever_they_rest_on(store: Store) -> None:
    plan = Plan(tasks=("classify",))
    known(store, failed(store, "a")[0], "context_loss")
    (before,) = drawn(store, plan)
    known(store, failed(store, "a")[0], "context_loss")
    (after,) = drawn(store, plan)
    assert before.id == after.id
    assert before.id.startswith("row_")


@pytest.mark.parametrize("split", ["val", "test", "test_hard"])
def test_failures_that_an_eval_set_measures_on_are_refused(store: Store, bundled: Guard, split: str) -> None:
    row = row_of(split).failure
    (measured,) = failed(store, row.actual_outcome, task=row.task, context=row.context)
    known(store, measured, "tool_failure")
    ruled(store, RULE, "kept", measured, correction="Waited.")
    assert drawn(store, guard=bundled) == []
    assert left_out(store, guard=bundled)[HELD_OUT] == 1


def test_what_labellers_wrote_of_them_is_refused_too(store: Store, bundled: Guard) -> None:
    told = row_of("test")
    ruled(store, told.reference_rule, "kept", *failed(store, "a"), correction="Waited.")
    ruled(store, RULE, "kept", *failed(store, "b"), correction=f"I do it. {told.reference_rule}")
    rows = drawn(store, Plan(tasks=("behave", "propose", "self_edit")), bundled)
    assert rows == []
    assert left_out(store, guard=bundled) == {HELD_OUT: 2}


def test_failures_of_a_train_split_are_allowed_and_marked(store: Store, bundled: Guard) -> None:
    row = row_of("train").failure
    (seen,) = failed(store, row.actual_outcome, task=row.task, context=row.context)
    (own,) = failed(store, "One of ours, which nobody has seen before")
    for one in (seen, own):
        known(store, one, "tool_failure")
    ruled(store, RULE, "kept", own, seen, correction="Waited.")
    for row in drawn(store, guard=bundled):
        assert row.lineage.marked == ((EVAL_TRAIN,) if seen.id in row.lineage.failures else ())


def test_rules_of_a_train_split_are_allowed_and_marked(store: Store, bundled: Guard) -> None:
    ruled(store, row_of("train").reference_rule, "kept", *failed(store, "a"), correction="Waited.")
    ruled(store, RULE, "kept", *failed(store, "b"), correction="Waited, too.")
    rows = [row for row in drawn(store, guard=bundled) if row.task != "classify"]
    assert {(RULE in str(row), row.lineage.marked) for row in rows if row.task == "propose"} == {
        (True, ()), (False, (EVAL_TRAIN,)),
    }  # fmt: skip


def test_a_folder_without_a_split_is_no_eval_set(tmp_path: Any) -> None:
    with pytest.raises(DatasetError, match="is no eval set"):
        guard_for([tmp_path / "evalset"])


def test_since_counts_decisions_and_not_failures(store: Store) -> None:
    old, new, named = failed(store, "a", "b", "c", at=DAY - timedelta(days=90))
    before = ruled(store, RULE, "kept", old, correction="Waited.", at=DAY - timedelta(days=1))
    after = ruled(store, OTHER, "kept", new, correction="Read.", at=DAY + timedelta(days=1))
    known(store, named, "tool_failure")
    rows = drawn(store, Plan(since=DAY))
    assert {one for row in rows for one in row.lineage.proposals} == {after.id} != {before.id}
    assert {row.lineage.failures for row in rows if row.task == "classify"} == {(new.id,), (named.id,)}
    later = drawn(store, Plan(since=now() + timedelta(days=1)))
    assert later == []


def test_one_rule_brings_its_own_causes_only(store: Store) -> None:
    one, other, alone = failed(store, "a", "b", "c")
    wanted = ruled(store, RULE, "kept", one, correction="Waited.")
    ruled(store, OTHER, "kept", other, correction="Read.")
    known(store, alone, "context_loss")
    rows = drawn(store, Plan(rules=(wanted.id[:20],)))
    assert {failure for row in rows for failure in row.lineage.failures} == {one.id}
    assert {row.task for row in rows} == {"behave", "classify", "propose", "self_edit"}
    with pytest.raises(StoreError, match="no proposal of this id"):
        drawn(store, Plan(rules=("prop_none",)))


def test_rules_of_one_mechanism_and_failures_that_read_alike_are_in_one_split(store: Store) -> None:
    for place in range(12):
        cases = failed(
            store, f"a{place}", f"b{place}", said={"signature": f"reads like {place}", "symptom": f"s{place}"}
        )
        ruled(store, f"{RULE} {place}", "kept", cases[0], correction="Right.", symptom=f"s{place}")
        ruled(
            store,
            f"{OTHER} {place}",
            "kept",
            cases[1],
            correction="Read.",
            symptom=f"s{place}",
            agent_id=f"agent{place}",
        )
        (other,) = failed(store, f"c{place}", agent_id=f"agent{place}")
        known(store, other, "context_loss", signature=f"reads like {place}")
    splits: dict[str, set[str]] = {}
    for row in drawn(store, Plan(split=0.5, shares=Shares(0.5, 1.0))):
        for failure in row.lineage.failures[:1]:
            splits.setdefault(_outcome(store, failure)[1:], set()).add(row.split)
    assert all(len(found) == 1 for found in splits.values())
    assert {"train", "validation"} == set.union(*splits.values())


def test_a_control_is_of_the_same_split(store: Store) -> None:
    rules: dict[str, str] = {}
    for place in range(12):
        cases = failed(store, f"a{place}", said={"signature": f"reads like {place}"})
        one = ruled(store, f"{RULE} {place}", "kept", *cases, correction=f"Right {place}.", symptom=f"s{place}")
        rules[one.id] = ""
    rows = drawn(store, Plan(split=0.5, shares=Shares(0.5, 1.0)))
    rules.update({row.lineage.proposals[0]: row.split for row in rows if row.lineage.proposals})
    controls = [row for row in rows if len(row.lineage.proposals) == 2]
    assert controls
    assert all(rules[row.lineage.proposals[1]] == row.split for row in controls)


def test_families_are_divided_by_when_they_began(store: Store) -> None:
    for place, days in enumerate((-1, 1)):
        said = {"signature": f"reads like {place}"}
        first, _ = failed(store, f"a{place}", f"b{place}", at=DAY + timedelta(days=days), said=said)
        ruled(store, f"{RULE} {place}", "kept", first, correction=f"Right {place}.", symptom=f"s{place}")
        (later,) = failed(store, f"c{place}", at=DAY + timedelta(days=30), said=said)
        known(store, later, "context_loss", **said)
    splits: dict[str, set[str]] = {}
    for row in drawn(store, Plan(split=DAY)):
        splits.setdefault(_outcome(store, row.lineage.failures[0])[1:], set()).add(row.split)
    assert splits == {"0": {"train"}, "1": {"validation"}}


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=1, max_size=6))
def test_families_are_what_is_joined_whatever_the_order(signatures: list[list[str]]) -> None:
    """Against the plain way: join sets as long as any two overlap."""
    rules = [
        filed().model_copy(update={"id": f"prop_{place}", "symptom": f"s{place}"}) for place in range(len(signatures))
    ]
    behind = {rule.id: said for rule, said in zip(rules, signatures, strict=True)}
    families = Families(rules, behind, {})
    backwards = Families(rules[::-1], behind, {})
    groups = [set(said) for said in signatures]
    for _ in signatures:
        groups = [set.union(*(other for other in groups if other & one)) for one in groups]
    for place, rule in enumerate(rules):
        assert families.of_rule(rule) == backwards.of_rule(rule)
        for letter in "abcdef":
            assert (families.of_signature(letter) == families.of_rule(rule)) == (letter in groups[place])


def test_rows_go_into_pandas_and_datasets(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, "a"), correction="Waited, mail anna.b@firma.de")
    rows = TrainingRows(tuple(drawn(store)))
    assert len(rows.to_pandas()) == len(rows.to_hf()) == len(rows)
    assert set(rows.to_pandas()["kind"]) == {"sft", "preference", "unpaired", "rewarded"}
    assert "anna.b" not in rows.to_pandas().to_json()


def _outcome(store: Store, failure_id: str) -> str:
    from dspy_reflex.store import outcomes

    with store.read() as connection:
        found = outcomes.failure(connection, failure_id)
        assert found
        return found.actual_outcome
