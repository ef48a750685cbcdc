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
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.library import current
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import FAILURES, OPTIMIZERS, PROGRAMS, ROOT, TRAIN, VAL, labelled, quick

IN_A_FRESH_PROCESS = """
import sys
from pathlib import Path
from tests.optimize.compiles import OPTIMIZERS, quick
small, place = map(Path, sys.argv[1:])
for name in OPTIMIZERS:
    print(quick(place / name, small, optimizer=name).path)
"""


def prompt(result: CompileResult) -> tuple[Any, Any]:
    """What a program sends, apart from its inputs."""
    return result.artifact.data["messages"], result.artifact.data["tail"]


def files_below(folder: Path) -> list[str]:
    """Every file, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_same_compile_gives_the_same_bytes_with_any_number_of_threads(
    optimizer: str, program: str, small: Path, tmp_path: Path
) -> None:
    """From a fresh run folder each, the second with eight threads."""
    first, second, threaded = (
        quick(tmp_path / name, small, program, optimizer=optimizer, threads=threads)
        for name, threads in (("a", 1), ("b", 1), ("c", 8))
    )
    assert first.path.name == second.path.name == threaded.path.name
    assert first.path.read_bytes() == second.path.read_bytes() == threaded.path.read_bytes()


def test_a_fresh_process_with_other_hashes_gives_the_same_bytes(small: Path, tmp_path: Path) -> None:
    """Nothing hangs on the order of a set, or on what was compiled before."""
    made: list[list[bytes]] = []
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", IN_A_FRESH_PROCESS, str(small), str(tmp_path / hash_seed)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        made.append([Path(line).read_bytes() for line in done.stdout.splitlines()])
    here = [quick(tmp_path / "here" / name, small, optimizer=name).path.read_bytes() for name in OPTIMIZERS]
    assert made[0] == made[1] == here


@pytest.mark.parametrize("optimizer", ["labeled_few_shot", "miprov2"])
def test_another_seed_takes_other_demos(optimizer: str, small: Path, tmp_path: Path) -> None:
    """And says which seed it was."""
    one, other = (quick(tmp_path / str(seed), small, optimizer=optimizer, seed=seed) for seed in (0, 7))
    assert (one.artifact.data["seed"], other.artifact.data["seed"]) == (0, 7)
    assert prompt(one) != prompt(other)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
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
    assert files_below(tmp_path / "out") == sorted([f"root_cause/{result.path.name}", "root_cause/current.json"])


def test_the_run_folder_says_what_was_compiled_and_what_came_of_it(small: Path, tmp_path: Path) -> None:
    """Config, trials in order, calls by role."""
    result = quick(tmp_path, small, optimizer="bootstrap_random_search", seed=3)
    config = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    told = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert (config["optimizer"], config["seed"], config["datasets"]) == ("bootstrap_random_search", 3, [str(small)])
    assert told == result.to_json()
    assert [row["trial"] for row in told["trials"]] == list(range(len(told["trials"])))
    assert len(told["trials"]) == 3 + 3  # uncompiled, labelled, unshuffled, and --trials more
    assert sum(role["calls"] for role in told["models"].values()) == told["calls"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_compile_that_changed_nothing_fails_and_writes_no_program(program: str, small: Path, tmp_path: Path) -> None:
    """Without demos `labeled_few_shot` has nothing to add."""
    with pytest.raises(CompileError, match=r"labeled_few_shot changed nothing: .*--trials") as caught:
        quick(tmp_path, small, program, optimizer="labeled_few_shot", max_demos=0)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_no_demos_allowed_means_no_demos(optimizer: str, small: Path, tmp_path: Path) -> None:
    """Either the instructions alone changed, or the compile says in a sentence that nothing did."""
    try:
        result = quick(tmp_path, small, optimizer=optimizer, max_demos=0)
    except CompileError as error:
        assert "changed nothing" in str(error)  # noqa: PT017
    else:
        assert result.artifact.data["demos"] == []


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("max_demos", [1, 6])
def test_no_more_demos_than_allowed(optimizer: str, max_demos: int, small: Path, tmp_path: Path) -> None:
    """Bootstrapped and labelled ones together."""
    demos = quick(tmp_path, small, optimizer=optimizer, max_demos=max_demos).artifact.data["demos"]
    assert 1 <= len(demos) <= max_demos


def test_compiling_changes_answers_for_the_better(compiled: CompileResult) -> None:
    """Clearly better on the rows it learnt from, and its own account of val says so, too."""
    six = load_taxonomy()
    contenders = [
        Contender("compiled", "program", compiled.artifact, connect("offline")),
        Contender("uncompiled", "uncompiled", publish(RootCauseClassifier(six), six), connect("offline")),
    ]
    report = benchmark_cause(labelled(FAILURES, "train"), contenders, baselines=False, allow_seen=True)
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
    assert 0 < data["threshold"] < 1


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
