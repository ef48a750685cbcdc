"""What becomes of a record of each format, on small files of the published form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.evalset.importers.imported import Imported, Row
from dspy_reflex.evalset.importers.registry import import_failures
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.evalset.importers.published import (
    aeb_label,
    aeb_run,
    agentrx_annotation,
    agentrx_run,
    mast_run,
    trail_error,
    trail_trace,
    whowhen_run,
    write,
)


def only(found: Imported) -> Row:
    """The one row."""
    (row,) = found.rows
    return row


def shown(row: Row) -> str:
    """The excerpt that a program sees."""
    context = row["context"]
    assert isinstance(context, dict)
    return str(context["trace_excerpt"])


def whowhen(folder: Path, *runs: dict[str, Any]) -> Imported:
    """The runs, imported."""
    for number, run in enumerate(runs):
        write(folder / f"{number}.json", run)
    return import_failures("whowhen", str(folder))


def test_a_run_of_whowhen_has_no_cause_and_keeps_its_marks(tmp_path: Path) -> None:
    found = whowhen(tmp_path, whowhen_run())
    row = only(found)
    assert row["id"] == "whowhen-algorithm-q1"
    assert (row["root_cause"], row["label_native"]) == (None, ["Expert_1", "step 1"])
    assert (row["task"], row["expected_outcome"], row["actual_outcome"]) == ("How many of 1?", "8", "turn 3 of run 1")
    assert found.explanations == {"whowhen-algorithm-q1": "because of 1"}
    assert found.labels == {}


def test_the_hand_crafted_runs_of_whowhen_name_their_speakers_by_role(tmp_path: Path) -> None:
    turns = [{"content": "go", "role": "human"}, {"content": "gone", "role": "WebSurfer"}]
    run = whowhen_run(history=turns, groundtruth="9")
    del run["ground_truth"]
    row = only(whowhen(tmp_path, run))
    assert (row["source"], row["expected_outcome"]) == ("whowhen/Hand-Crafted", "9")
    assert shown(row) == "[step 0] human: go\n[step 1] WebSurfer: gone"


def test_a_turn_that_only_ends_the_run_is_not_what_came_out(tmp_path: Path) -> None:
    run = whowhen_run()
    run["history"].append({"content": "TERMINATE", "role": "user", "name": "Expert_4"})
    assert only(whowhen(tmp_path, run))["actual_outcome"] == "turn 3 of run 1"


def test_a_span_of_trail_is_found_below_others_and_shown_alone(tmp_path: Path) -> None:
    write(tmp_path / "traces" / "t1.json", trail_trace())
    errors = [trail_error("Language-only"), trail_error("Goal Deviation"), trail_error("Language-only")]
    write(tmp_path / "annotations" / "t1.json", {"errors": errors, "scores": []})
    found = import_failures("trail", str(tmp_path))
    row = only(found)
    assert (row["root_cause"], row["also_acceptable"]) == ("Language-only", ["Goal Deviation"])
    assert row["label_native"] == ["Language-only", "Goal Deviation", "Language-only"]
    assert (row["task"], row["expected_outcome"], row["actual_outcome"]) == ("How tall is it?", "8 m", "7 m")
    assert (row["agent_id"], row["source"]) == ("call", "trail/gaia")
    assert shown(row) == "[span call status=Ok]\nINPUT (last messages):\nuser: make a plan\nOUTPUT:\n1. guess"
    assert "it guessed although" in found.explanations[str(row["id"])]


def test_what_trail_marks_and_no_row_can_show_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "t1.json", trail_trace())
    write(tmp_path / "t2.json", trail_trace("t2"))
    write(tmp_path / "t3.json", trail_trace("t3"))
    errors = [trail_error("Language-only"), trail_error("Bad Mood"), trail_error("Language-only", "id-gone")]
    write(tmp_path / "a1.json", {"trace_id": "t1", "errors": errors})
    write(tmp_path / "a2.json", {"trace_id": "t2", "errors": []})
    assert dict(import_failures("trail", str(tmp_path)).skipped) == {
        "category outside the taxonomy: Bad Mood": 1,
        "marked span is not in the trace": 1,
        "no span is marked": 1,
        "trace without annotations": 1,
    }


def test_the_hub_has_trace_and_annotations_of_trail_in_one_row_as_text(tmp_path: Path) -> None:
    line = {"trace": json.dumps(trail_trace()), "labels": json.dumps({"errors": [trail_error("Language-only")]})}
    path = write(tmp_path / "gaia.jsonl", [line])
    assert import_failures("trail", str(path)).labels == {"Language-only": 1}


def test_the_modes_of_a_run_of_mast_are_in_the_order_of_the_preset(tmp_path: Path) -> None:
    row = only(import_failures("mast", str(write(tmp_path / "mad.json", [mast_run(modes=("3.1", "1.3"))]))))
    assert (row["root_cause"], row["also_acceptable"]) == ("Step Repetition", ["Premature Termination"])
    assert row["label_native"] == ["1.3", "3.1"]
    assert (row["task"], row["agent_id"]) == ("write game 1", "ChatDev")
    assert shown(row).startswith("[INFO] start")


def test_each_code_of_mast_is_the_preset_label_of_its_place(tmp_path: Path) -> None:
    codes = list(mast_run()["mast_annotation"])
    runs = [mast_run(number, (code,)) for number, code in enumerate(codes, start=1)]
    rows = import_failures("mast", str(write(tmp_path / "mad.json", runs))).rows
    assert tuple(row["root_cause"] for row in rows) == load_taxonomy("mast").labels


def test_runs_of_mast_without_a_mode_and_runs_given_twice_are_counted(tmp_path: Path) -> None:
    runs = [mast_run(1), mast_run(1), mast_run(2, modes=())]
    found = import_failures("mast", str(write(tmp_path / "mad.json", runs)))
    assert dict(found.skipped) == {"the same run as an earlier record": 1, "no mode is marked": 1}


def human_run(*votes: tuple[str, int]) -> dict[str, Any]:
    """A run of the human-labelled data set: each mode's title, and how many of three said yes."""
    annotations = [
        {"failure mode": mode} | {f"annotator_{number}": number <= yes for number in (1, 2, 3)} for mode, yes in votes
    ]
    run = mast_run(annotations=annotations, round="Round 1")
    del run["mast_annotation"]
    return run


def test_the_human_votes_of_mast_go_by_majority_and_by_title(tmp_path: Path) -> None:
    """Early rounds gave the codes to other modes."""
    run = human_run(
        ("2.2 Step Repetition\nA step again.", 2),
        ("1.3 Premature Termination\n", 1),
        ("2.5 Ignored Other Agent's Input", 3),
        ("4.3 Lack of critical verification", 3),
    )
    found = import_failures("mast", str(write(tmp_path / "mad.json", [run])))
    row = only(found)
    assert (row["root_cause"], row["also_acceptable"]) == ("Step Repetition", ["Ignored Other Agent Input"])
    assert row["label_native"] == ["2.2 Step Repetition", "2.5 Ignored Other Agent's Input"]
    assert list(found.skipped) == [
        "mode outside the taxonomy, its run kept if it has another: 4.3 Lack of critical verification"
    ]


AS_YAML = "id: 7\nnote:\n  text: the checker never looked\n  options:\n    No check: yes\ncontent: x is 4\n"
AS_JSON = json.dumps({"messages": [{"content": "x is 4"}], "note": {"text": "the checker never looked", "options": {}}})


@pytest.mark.parametrize("log", [AS_YAML, AS_JSON, json.loads(AS_JSON)], ids=["yaml", "json", "object"])
def test_an_annotators_note_in_a_log_of_mast_is_taken_out_of_it(log: Any, tmp_path: Path) -> None:
    run = mast_run(trace={"trajectory": log})
    found = import_failures("mast", str(write(tmp_path / "mad.json", [run])))
    assert "x is 4" in shown(only(found))
    assert "never looked" not in json.dumps(only(found))
    assert "never looked" in "".join(found.explanations.values())


@pytest.mark.parametrize("name", ["12", 12], ids=["as on the hub", "as in the repository"])
def test_a_run_of_agentrx_has_the_category_of_its_root_cause(name: Any, tmp_path: Path) -> None:
    write(tmp_path / "tau_retail.jsonl", [agentrx_annotation(name)])
    write(tmp_path / "tau_retail_dataset.jsonl", [agentrx_run(), agentrx_run("tau_retail_13")])
    found = import_failures("agentrx", str(tmp_path))
    row = only(found)
    assert (row["root_cause"], row["also_acceptable"]) == ("Instruction/Plan Adherence Failure", [])
    assert row["label_native"] == ["Instruction Adherence Failure"]
    assert (row["id"], row["source"]) == ("agentrx-tau_retail-12", "agentrx/tau_retail")
    assert (row["task"], row["actual_outcome"]) == ("Cancel the order.", "says 3")
    assert "nothing was confirmed" in found.explanations["agentrx-tau_retail-12"]
    assert dict(found.skipped) == {"run without annotation": 1}


@pytest.mark.parametrize(
    ("published", "label"),
    [
        ("Invention of new information", "Invention of New Information"),
        ("Intent Plan Misalignment", "Intent-Plan Misalignment"),
        ("Intent not supported", "Intent Not Supported"),
        ("Instruction / Plan Adherence Failure", "Instruction/Plan Adherence Failure"),
        ("Invocation Failure", "Invalid Invocation"),
    ],
)
def test_a_category_of_agentrx_is_recognised_however_it_is_spelt(published: str, label: str, tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", [agentrx_annotation(category=published), agentrx_run()])
    assert import_failures("agentrx", str(path)).labels == {label: 1}


def test_a_run_of_agenterrorbench_is_labelled_by_module_and_error(tmp_path: Path) -> None:
    labels = [aeb_label(), aeb_label("GPT-4o_002_a", error=""), aeb_label("GPT-4o_003_a", "memory", "format_error")]
    write(tmp_path / "Label" / "alfworld_labels.json", labels)
    for label in labels:
        write(tmp_path / "Original_Failure_Trajectory" / "ALFWorld" / f"{label['trajectory_id']}.json", aeb_run())
    found = import_failures("agenterrorbench", str(tmp_path))
    row = only(found)
    assert (row["root_cause"], row["label_native"]) == ("planning/inefficient_plan", ["plan/inefficient_plan"])
    assert (row["task"], row["actual_outcome"]) == ("put a mug away.", "go home")
    assert (row["agent_id"], row["source"]) == ("GPT-4o", "agenterrorbench/alfworld")
    assert found.explanations == {"agenterrorbench-GPT-4o_001_a": "it walked in circles"}
    assert dict(found.skipped) == {
        "no failure type is given": 1,
        "error outside the taxonomy: memory/format_error": 1,
    }


def test_the_excerpt_of_a_long_run_of_agenterrorbench_has_its_critical_step(tmp_path: Path) -> None:
    """Steps are the agent's own turns, counted from one."""
    turns = [{"role": role, "content": f"{role} {at}"} for at in range(1, 41) for role in ("user", "assistant")]
    label = aeb_label()
    label["critical_failure_step"] = 30
    label["step_annotations"][0]["step"] = 30
    write(tmp_path / "labels.json", [label])
    write(tmp_path / "GPT-4o_001_a.json", {"messages": turns})
    assert "] assistant: assistant 30\n" in shown(only(import_failures("agenterrorbench", str(tmp_path)))) + "\n"
