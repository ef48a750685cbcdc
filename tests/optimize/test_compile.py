"""One compile: the same bytes every time, honest about where it comes from, loud when nothing came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.benchmark.predict import Contender
from dspy_reflex.benchmark.runner import benchmark_cause
from dspy_reflex.errors import CompileError, ConfigError, DatasetError
from dspy_reflex.optimize.compile import CompileResult
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.library import current
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import CORE, PROGRAMS, ROOT, TRAIN, VAL, files_below, labelled, mid_set, quick

EACH = [*((name, "root_cause") for name in CORE), ("bootstrap_random_search", "rule")]
"""Every optimizer with one program, and both programs with one optimizer."""
IN_A_FRESH_PROCESS = """
import sys
from pathlib import Path
from dspy_reflex.optimize import compile as compiling
from tests.optimize.compiles import CORE, quick
compiling.write_run_report = lambda _: None
small, place = map(Path, sys.argv[1:])
for name in CORE:
    print(quick(place / name, small, optimizer=name).path)
"""


def prompt(result: CompileResult) -> tuple[Any, Any]:
    """What a program sends, apart from its inputs."""
    return result.artifact.data["messages"], result.artifact.data["tail"]


@pytest.mark.parametrize(("optimizer", "program"), EACH)
def test_the_same_compile_gives_the_same_bytes_with_any_number_of_threads(
    optimizer: str, program: str, small: Path, tmp_path: Path
) -> None:
    """From a fresh run folder each, the second with eight threads; the bill and the candidates are the same, too."""
    one, eight = (
        quick(tmp_path / str(threads), small, program, optimizer=optimizer, threads=threads) for threads in (1, 8)
    )
    assert one.path.read_bytes() == eight.path.read_bytes()
    assert one.candidates == eight.candidates
    assert one.ledger["phases"] == eight.ledger["phases"]


def test_a_fresh_process_with_other_hashes_gives_the_same_bytes(small: Path, tmp_path: Path) -> None:
    """Nothing hangs on the order of a set, or on what was compiled before."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS, str(small), str(tmp_path / "there")],
        env=os.environ | {"PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    there = [Path(line).read_bytes() for line in done.stdout.splitlines()]
    assert there == [quick(tmp_path / "here" / name, small, optimizer=name).path.read_bytes() for name in CORE]


@pytest.mark.parametrize("optimizer", ["labeled_few_shot", "miprov2"])
def test_another_seed_takes_other_demos(optimizer: str, small: Path, tmp_path: Path) -> None:
    """And says which seed it was."""
    one, other = (quick(tmp_path / str(seed), small, optimizer=optimizer, seed=seed) for seed in (0, 7))
    assert (one.artifact.data["seed"], other.artifact.data["seed"]) == (0, 7)
    assert prompt(one) != prompt(other)


@pytest.mark.parametrize(("optimizer", "program"), EACH)
def test_the_artefact_names_the_row_of_every_demo(optimizer: str, program: str, small: Path, tmp_path: Path) -> None:
    """By its id in the train split, and the demo's text is that row's."""
    data = quick(tmp_path, small, program, optimizer=optimizer).artifact.data
    rows = {row.id: row for row in labelled(small, "train")}
    assert data["demos"]
    for demo in data["demos"]:
        row, values = rows[demo["id"]], demo["values"]
        if program == "root_cause":
            assert values["task"] == row.inputs["task"]
        else:
            assert row.inputs["task"] in values["failures"]
        if program == "root_cause" and not demo["bootstrapped"]:
            assert values["root_cause"] == row.root_cause


def test_the_artefact_carries_the_hashes_of_the_rows_it_was_made_with(small: Path, tmp_path: Path) -> None:
    """Train and val apart, and none of the test rows."""
    data = quick(tmp_path, small).artifact.data["data"]
    for split in ("train", "val"):
        assert sorted(data[split]) == sorted(row.row_hash for row in labelled(small, split))
    unseen = {row.row_hash for row in labelled(small, "test")}
    assert not unseen & {*data["train"], *data["val"]}
    assert (data["name"], len(data["train"]), len(data["val"])) == ("small", 6 * TRAIN, 6 * VAL)


def test_the_artefact_holds_no_path_and_no_time(small: Path, tmp_path: Path) -> None:
    """It is the same wherever and whenever it is made."""
    result = quick(tmp_path / "somewhere-special", small)
    text = result.path.read_text(encoding="utf-8")
    assert not [word for word in (str(small.parent), "somewhere-special", str(Path.home()), str(ROOT)) if word in text]
    assert not {"time", "date", "created", "created_at", "timestamp", "host", "user"} & set(json.loads(text))
    assert not [key for key in json.loads(text)["optimizer"] if "time" in key or "path" in key]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_artefact_says_what_made_it_and_how_well_it_did(program: str, small: Path, tmp_path: Path) -> None:
    """Optimizer, model, scores with n and interval; read back, it is checked."""
    result = quick(tmp_path, small, program)
    found = read(result.path)
    assert found == result.artifact
    assert (found.model, found.data["optimizer"]["name"]) == ("offline/1", "bootstrap_few_shot")
    scores = found.data["scores"]
    low, high = scores["interval"]
    assert low <= scores["value"] <= high
    assert (scores["on"], scores["n"]) == ("val (chosen on it)", 6 * VAL)
    assert scores == {name: value for name, value in result.scores.items() if name != "uncompiled"}


def test_a_compiled_program_becomes_current_and_its_name_is_its_content(small: Path, tmp_path: Path) -> None:
    """One file a program, and a word on which is used."""
    result = quick(tmp_path, small)
    assert result.path == tmp_path / "out" / "root_cause" / f"{result.artifact.version}.json"
    assert current(tmp_path / "out", "root_cause") == {"offline/1": result.artifact.version}
    names = (result.path.name, "current.json", "history.jsonl", ".lock")
    assert files_below(tmp_path / "out") == sorted(f"root_cause/{name}" for name in names)


def test_the_run_folder_says_what_was_compiled_and_what_came_of_it(small: Path, tmp_path: Path) -> None:
    """Config, candidates in order, calls by phase and by model; both programs, and an answer for each row of val."""
    result = quick(tmp_path, small, optimizer="bootstrap_random_search", seed=3)
    run = tmp_path / "run"
    config, told = (json.loads((run / f"{name}.json").read_text(encoding="utf-8")) for name in ("config", "result"))
    assert (config["optimizer"], config["seed"], config["datasets"]) == ("bootstrap_random_search", 3, [str(small)])
    assert told == result.to_json()
    assert [row["candidate"] for row in told["candidates"]] == list(range(3))
    assert [row["best"] for row in told["candidates"]].count(True) == 1
    assert {row["rows"] for row in told["candidates"] if not row["dropped"]} == {6 * VAL}
    for part in ("phases", "models"):
        assert sum(counts["calls"] for counts in told["ledger"][part].values()) == told["calls"] > 0
    assert sum(told["coverage"].values()) == len(result.artifact.data["demos"])
    assert read(run / "program.json") == result.artifact
    assert read(run / "uncompiled.json").data["demos"] == []
    answers = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["gold"]) for row in answers] == [(row.id, row.root_cause) for row in labelled(small, "val")]


def test_the_best_candidate_is_the_one_that_is_measured(small: Path, tmp_path: Path) -> None:
    """Its score on the board is the artefact's, for nothing is asked a second time."""
    result = quick(tmp_path, small, optimizer="bootstrap_random_search")
    (best,) = [row for row in result.candidates if row["best"]]
    assert best["score"] == pytest.approx(result.scores["value"], abs=1e-4)
    assert best["demos"] == len(result.artifact.data["demos"])
    assert result.ledger["phases"]["measure"]["calls"] == 6 * VAL  # the uncompiled program alone


def test_a_compile_that_changed_nothing_fails_and_writes_no_program(small: Path, tmp_path: Path) -> None:
    """One trial of `miprov2` is the uncompiled program itself."""
    with pytest.raises(CompileError, match=r"miprov2 changed nothing: .*--trials") as caught:
        quick(tmp_path, small, optimizer="miprov2", candidates=2, trials=1)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "run" / "result.json").exists()


def test_no_demos_allowed_means_no_demos(small: Path, tmp_path: Path) -> None:
    """The instructions alone change."""
    result = quick(tmp_path, small, optimizer="miprov2", max_demos=0)
    assert result.artifact.data["demos"] == []
    assert result.artifact.data["instructions"] != read(tmp_path / "run" / "uncompiled.json").data["instructions"]


@pytest.mark.parametrize(
    "name", [name for name, one in OPTIMIZERS.items() if "max_demos" in one.configured({}).__dict__]
)
def test_demos_are_refused_out_of_range(name: str, small: Path, tmp_path: Path) -> None:
    """Before a row is read."""
    with pytest.raises(ConfigError, match="--max-demos: -1 is not between"):
        quick(tmp_path, small, optimizer=name, max_demos=-1)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("optimizer", CORE)
@pytest.mark.parametrize("max_demos", [1, 6])
def test_no_more_demos_than_allowed(optimizer: str, max_demos: int, small: Path, tmp_path: Path) -> None:
    """Bootstrapped and labelled ones together."""
    demos = quick(tmp_path, small, optimizer=optimizer, max_demos=max_demos).artifact.data["demos"]
    assert 1 <= len(demos) <= max_demos


def test_compiling_changes_answers_for_the_better(compiled: CompileResult, tmp_path: Path) -> None:
    """Clearly better on the rows it learnt from, and its own account of val says so, too."""
    train = labelled(mid_set(tmp_path), "train")
    six = load_taxonomy()
    contenders = [
        Contender("compiled", "program", compiled.artifact, connect("offline")),
        Contender("uncompiled", "uncompiled", publish(RootCauseClassifier(six), six), connect("offline")),
    ]
    report = benchmark_cause(train, contenders, baselines=False, allow_seen=True)
    after, before = (row["macro_f1"] for row in report.to_json()["rows"])
    assert after > before + 0.15
    assert compiled.scores["value"] > compiled.scores["uncompiled"]["value"] + 0.05


def test_rules_get_better_too(compiled_rule: CompileResult) -> None:
    """On val, which the rule program was chosen on."""
    assert compiled_rule.scores["metric"] == "rule score"
    assert compiled_rule.scores["value"] > compiled_rule.scores["uncompiled"]["value"] + 0.1


def test_miprov2_writes_instructions_and_takes_demos_of_several_causes(compiled: CompileResult) -> None:
    """Compiling works through the prompt and through nothing else."""
    data = compiled.artifact.data
    assert "tool_failure" in data["instructions"]
    assert len(Counter(demo["values"]["root_cause"] for demo in data["demos"])) >= 4
    assert data["demos"] != []


def test_confidence_is_calibrated_on_val(compiled: CompileResult, small: Path, tmp_path: Path) -> None:
    """With a threshold where the target can be reached; with few answers there is neither."""
    assert compiled.artifact.data["calibration"]["n"] == 72
    assert compiled.artifact.threshold is not None
    assert 0 < compiled.artifact.threshold < 1
    few = quick(tmp_path, small)
    assert (few.artifact.data["calibration"], few.artifact.threshold, few.told["calibration"]) == (None, None, None)


def test_an_unknown_optimizer_or_a_missing_data_set_is_said_before_anything_is_written(
    small: Path, tmp_path: Path
) -> None:
    """Neither run folder nor program."""
    with pytest.raises(ConfigError, match="no optimizer 'magic'; choose one of labeled_few_shot"):
        quick(tmp_path, small, optimizer="magic")
    with pytest.raises(DatasetError, match="no such file"):
        quick(tmp_path, small / "nope.jsonl")
    assert files_below(tmp_path) == []


def test_rows_without_rules_cannot_teach_rules(small: Path, tmp_path: Path) -> None:
    """The sentence names both fields, and no program is written."""
    rows = [json.loads(line) for line in (small / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    bare = tmp_path / "bare.jsonl"
    bare.write_text("".join(json.dumps({**row, "reference_rule": None}) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DatasetError, match="`reference_rule` and `component`"):
        quick(tmp_path, bare, "rule")
    assert not (tmp_path / "out").exists()
