"""From the store to a folder that trainers take: what is in it, what is not, and that it is the same every time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import datasets
from dspy_reflex.errors import ExportError
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.finetune.folder import SUMS, write
from dspy_reflex.finetune.formats.registry import FORMATS
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.plan import EVAL_TRAIN, HELD_OUT, NO_CORRECTION, Plan
from dspy_reflex.finetune.row import Lineage, Row, Turn
from dspy_reflex.finetune.rows.behave import Shares
from dspy_reflex.finetune.sink import sha256_of
from dspy_reflex.finetune.tables import TrainingRows
from dspy_reflex.records.review import State
from dspy_reflex.runtime.library import bundled
from dspy_reflex.stages.export import Exported, check, export, guard_for, training_rows
from dspy_reflex.store import forget
from dspy_reflex.store.store import Store
from dspy_reflex.taxonomies.load import load_taxonomy
from tests import postgres
from tests.finetune.taught import failed, known, ruled

DATA = bundled("datasets") / "failures"
OPEN = Guard([])
"""Knows no eval set."""
STATES: tuple[State, ...] = get_args(State)


def exported(store: Store, out: Path, form: str = "trl", plan: Plan | None = None, **said: Any) -> Exported:
    """An export that no eval set guards."""
    return export(store, plan or Plan(), said.pop("guard", OPEN), FORMATS[form], out, licence="mit", **said)


def text_in(folder: Path) -> str:
    """All rows of a folder."""
    return "\n".join(path.read_text() for path in sorted((folder / "data").rglob("*.jsonl")))


def bytes_in(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_store_with_nothing_approved_writes_nothing(store: Store, tmp_path: Path) -> None:
    ruled(store, "A pending rule.", "pending", *failed(store, "x"))
    assert exported(store, tmp_path / "out").written.rows == {}
    assert not (tmp_path / "out").exists()


def test_a_correction_becomes_rows_of_every_kind_with_their_lineage(store: Store, tmp_path: Path) -> None:
    (failure,) = failed(store, "The broken outcome")
    rule = ruled(store, "Wait before you retry.", "applied", failure, correction="The right outcome")
    exported(store, tmp_path / "out", plan=Plan(tasks=("behave",), validation=0))
    rows = {
        kind: (tmp_path / "out" / "data" / kind / "train.jsonl").read_text()
        for kind in ("sft", "preference", "unpaired")
    }
    assert "The broken outcome" not in rows["sft"].replace("Task of The broken outcome", "")
    pair = json.loads(rows["preference"])
    assert (pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == ("The right outcome", "The broken outcome")
    assert [json.loads(line)["label"] for line in rows["unpaired"].splitlines()] == [True, False]
    (first, *_) = map(json.loads, (tmp_path / "out" / "lineage.jsonl").read_text().splitlines())
    told = first["lineage"]
    assert (told["failure"], told["proposal"], told["program"]) == (failure.id, rule.id, rule.proposal.program)
    assert len(told["rule_sha256"]) == 64


def test_the_rule_is_never_what_is_imitated_as_behaviour(store: Store) -> None:
    rule = "Wait before you retry, at most three times."
    ruled(store, rule, "kept", *failed(store, "a", "b"), correction="Waited, then sent.")
    for row in training_rows(store, Plan(tasks=("behave",)), OPEN):
        if row.kind != "rewarded":
            assert all(rule not in turn.content for turn in row.answer)


@pytest.mark.parametrize(("share", "ruled_rows"), [(0.0, 2), (1.0, 0)])
def test_the_rule_is_left_out_of_the_stated_share(store: Store, share: float, ruled_rows: int) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a", "b"), correction="Waited.")
    plan = Plan(tasks=("behave",), shares=Shares(without_rule=share, controls=0))
    rows = [row for row in training_rows(store, plan, OPEN) if row.kind == "sft"]
    assert sum(row.prompt[0].role == "system" for row in rows) == ruled_rows


def test_failures_without_a_correction_are_left_out_and_counted(store: Store, tmp_path: Path) -> None:
    one, other = failed(store, "a", "b")
    ruled(store, "Wait before you retry.", "kept", one, other, correction={one.id: "Waited."})
    found = exported(store, tmp_path / "out", plan=Plan(tasks=("behave",)))
    assert found.written.left_out[NO_CORRECTION] == 1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=st.lists(st.sampled_from(STATES), min_size=1, max_size=6))
def test_only_approved_rules_are_ever_something_to_imitate(store: Store, states: list[State]) -> None:
    rules = [
        (state, ruled(store, f"Word{place} {state} rule.", state, *failed(store, f"o{place}"), correction="Right."))
        for place, state in enumerate(states)
    ]
    rows = list(training_rows(store, Plan(), OPEN))
    taught = {row.lineage.proposal for row in rows}
    for state, rule in rules:
        if state in ("pending", "deferred", "reverted"):
            assert rule.id not in taught
            assert all(rule.rule not in turn.content for row in rows for turn in (*row.prompt, *row.answer))
        if state == "rejected":
            assert all(row.label is False for row in rows if row.lineage.proposal == rule.id)
    with store.write() as connection:
        for table in ("patches", "reviews", "proposal_failures", "proposals", "diagnoses", "outcomes"):
            connection.exec_driver_sql(f"DELETE FROM {table}")


def test_a_reverted_rule_is_gone_from_the_next_export_which_says_so(store: Store, tmp_path: Path) -> None:
    from dspy_reflex.store import proposals

    rule = ruled(store, "Wait before you retry.", "applied", *failed(store, "a"), correction="Waited.")
    stays = ruled(store, "Read the first message again.", "kept", *failed(store, "b"), correction="Read it.")
    first = exported(store, tmp_path / "out")
    with store.write() as connection:
        proposals.move(connection, rule, "reverted", actor="ada", action="revert")
    second = exported(store, tmp_path / "out")
    assert second.withdrawn == (rule.id,)
    assert second.written.gone > 0
    assert set(first.rules) == {rule.id, stays.id}
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["withdrawn"] == [rule.id]
    assert "Wait before you retry" not in text_in(tmp_path / "out")


def test_what_was_forgotten_is_in_no_row(store: Store, tmp_path: Path) -> None:
    one, other = failed(store, "Forget this outcome", "Keep this one")
    ruled(store, "Wait before you retry.", "kept", one, other, correction="Waited.")
    with store.write() as connection:
        forget.forget(connection, one.id, actor="ada", reason="asked to")
    exported(store, tmp_path / "out")
    assert "Forget this" not in text_in(tmp_path / "out")
    assert "Keep this one" in text_in(tmp_path / "out")


def test_secrets_in_what_reviewers_wrote_are_taken_out(store: Store, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a"), correction=f"Used {secret} and anna.b@firma.de")
    for form in ("trl", "trl_text"):
        exported(store, tmp_path / form, form)
        assert secret not in text_in(tmp_path / form)
        assert "anna.b@firma.de" not in text_in(tmp_path / form)


@pytest.mark.parametrize("split", ["val", "test", "test_hard"])
def test_failures_that_an_eval_set_measures_on_are_refused(store: Store, split: str) -> None:
    row = load_evalset(DATA, load_taxonomy()).split(split)[0].failure
    (measured,) = failed(store, row.actual_outcome, context=row.context)
    known(store, measured, "tool_failure")
    ruled(store, "Wait before you retry.", "kept", measured, correction="Waited.")
    assert list(training_rows(store, Plan(), guard_for([]))) == []


def test_failures_of_a_train_split_are_allowed_and_marked(store: Store, tmp_path: Path) -> None:
    row = load_evalset(DATA, load_taxonomy()).split("train")[0].failure
    (seen,) = failed(store, row.actual_outcome, context=row.context)
    (own,) = failed(store, "One of ours, which nobody has seen before")
    for one in (seen, own):
        known(store, one, "tool_failure")
    marks = {row.lineage.failure: row.lineage.marked for row in training_rows(store, Plan(), guard_for([]))}
    assert marks == {seen.id: (EVAL_TRAIN,), own.id: ()}


def test_what_is_refused_is_counted(store: Store, tmp_path: Path) -> None:
    row = load_evalset(DATA, load_taxonomy()).split("test")[0].failure
    (measured,) = failed(store, row.actual_outcome, context=row.context)
    known(store, measured, "tool_failure")
    found = exported(store, tmp_path / "out", guard=guard_for([]), dry_run=True)
    assert found.written.left_out == {HELD_OUT: 1}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", list(FORMATS))
def test_every_format_is_a_folder_that_datasets_loads(store: Store, tmp_path: Path, form: str) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a", "b", "c"), correction="Waited.")
    found = exported(store, tmp_path / "out", form, Plan(validation=0))
    kinds = {where.partition("/")[0] for where in found.written.rows}
    for kind in kinds:
        loaded: Any = datasets.load_dataset(str(tmp_path / "out"), kind, cache_dir=str(tmp_path / "cache"))
        assert {f"{kind}/{split}": len(rows) for split, rows in loaded.items()} == {
            where: n for where, n in found.written.rows.items() if where.startswith(f"{kind}/")
        }
    for line in (tmp_path / "out" / SUMS).read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert sha256_of(tmp_path / "out" / name) == digest


def test_the_same_store_gives_the_same_bytes(store: Store, tmp_path: Path) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a", "b"), correction="Waited.")
    for form in FORMATS:
        exported(store, tmp_path / "one" / form, form)
        exported(store, tmp_path / "two" / form, form)
    assert bytes_in(tmp_path / "one") == bytes_in(tmp_path / "two")


def test_only_what_is_new_can_be_exported(store: Store, tmp_path: Path) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a"), correction="Waited.")
    exported(store, tmp_path / "one")
    ruled(store, "Read the first message again.", "kept", *failed(store, "b"), correction="Read it.")
    exported(store, tmp_path / "two", new_since=tmp_path / "one")
    exported(store, tmp_path / "all")
    ids = {name: _ids(tmp_path / name) for name in ("one", "two", "all")}
    assert ids["one"] & ids["two"] == set()
    assert ids["two"]
    assert ids["all"] >= ids["one"] | ids["two"]


def test_a_family_is_in_one_split(store: Store) -> None:
    for place in range(30):
        ruled(
            store, f"Rule {place}.", "kept", *failed(store, f"a{place}", agent_id=f"agent{place}"), correction="Right."
        )
    splits: dict[str, set[str]] = {}
    for row in training_rows(store, Plan(validation=0.5), OPEN):
        splits.setdefault(row.family, set()).add(row.split)
    assert all(len(found) == 1 for found in splits.values())


def test_a_folder_of_something_else_is_left_alone(store: Store, tmp_path: Path) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a"), correction="Waited.")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("my life's work")
    with pytest.raises(ExportError, match="no export of ours"):
        exported(store, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.tex").read_text() == "my life's work"


def test_an_export_that_cannot_end_leaves_the_former_one(store: Store, tmp_path: Path) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a"), correction="Waited.")
    exported(store, tmp_path / "out")
    before = bytes_in(tmp_path / "out")

    def rows() -> Any:
        yield Row("sft", "behave", (Turn("user", "q"),), (Turn("assistant", "a"),), Lineage(), "f").identified()
        raise OSError(28, "No space left on device")

    with pytest.raises(ExportError, match="No space left"):
        write(rows(), FORMATS["trl"], tmp_path / "out", left_out=Counter(), licence="mit", told={})
    assert bytes_in(tmp_path / "out") == before
    assert [path.name for path in tmp_path.glob(".out*")] == []


def test_rows_go_into_pandas_and_datasets(store: Store) -> None:
    ruled(store, "Wait before you retry.", "kept", *failed(store, "a"), correction="Waited.")
    rows = TrainingRows(tuple(training_rows(store, Plan(), OPEN)))
    assert len(rows.to_pandas()) == len(rows.to_hf()) == len(rows)
    assert set(rows.to_pandas()["kind"]) == {"sft", "preference", "unpaired", "rewarded"}


def test_malformed_rows_are_listed_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    good = json.dumps(
        {"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]}
    )
    file.write_text("\n".join([good, "{", "null", '{"prompt": "x"}', good]) + "\n")
    rows, problems = check(file, FORMATS["trl"])
    assert rows == 5
    assert [one.split(":")[1] for one in problems] == ["2", "3", "4"]


def test_postgresql_gives_the_same_kinds_of_rows(postgresql: str, tmp_path: Path) -> None:
    with Store(postgres.database(postgresql)) as store:
        ruled(store, "Wait before you retry.", "kept", *failed(store, "a", "b"), correction="Waited.")
        (third,) = failed(store, "c")
        known(store, third, "tool_failure")
        found = exported(store, tmp_path / "out", "parquet", Plan(validation=0))
    assert found.written.rows == {"preference/train": 2, "rewarded/train": 2, "sft/train": 9, "unpaired/train": 5}


def _ids(folder: Path) -> set[str]:
    return {json.loads(line)["id"] for line in (folder / "lineage.jsonl").read_text().splitlines()}
