"""Compiling and scoring as a library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspy_reflex import RootCauseClassifier, RuleProposer, compile_program, evaluate_program
from dspy_reflex.errors import BenchmarkError, CompileError
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import labelled, quick, ten_rows

QUICK: dict[str, Any] = {"optimizer": "bootstrap_few_shot", "max_demos": 4}


def test_compile_program_does_what_the_command_does(small: Path, tmp_path: Path) -> None:
    """The same bytes, where it was told to put them."""
    made = compile_program("root_cause", small, out=tmp_path / "a", run=tmp_path / "r", **QUICK)
    again = quick(tmp_path, small, max_demos=4)
    assert made.path.parent == tmp_path / "a" / "root_cause"
    assert made.path.read_bytes() == again.path.read_bytes()


def test_compile_program_takes_several_sets_and_a_taxonomy(tmp_path: Path) -> None:
    """Paths as text do, too."""
    taxonomy, path = ten_rows(tmp_path)
    made = compile_program(
        "root_cause", [str(path)], taxonomy=load_taxonomy(str(taxonomy)), out=tmp_path / "a", run=tmp_path / "r", **QUICK
    )  # fmt: skip
    assert made.artifact.labels == ("unripe", "rotten", "bruised")


def test_a_run_folder_that_is_not_named_is_a_new_one(small: Path, in_empty_folder: Path) -> None:
    """Never one that is there."""
    runs = [compile_program("root_cause", small, **QUICK).run for _ in range(2)]
    assert [str(run) for run in runs] == [
        "experiments/root_cause-bootstrap_few_shot-seed0",
        "experiments/root_cause-bootstrap_few_shot-seed0-2",
    ]
    assert all((in_empty_folder / run / "result.json").exists() for run in runs)


def test_there_are_two_programs(small: Path) -> None:
    """Another name is a mistake, said at once."""
    with pytest.raises(CompileError, match="no program 'causes'; compile one of root_cause, rule"):
        compile_program("causes", small)


def test_evaluate_program_scores_an_artefact_on_rows_it_has_not_seen(small: Path, tmp_path: Path) -> None:
    """Of a folder, its test split."""
    artifact = quick(tmp_path, small).artifact
    report = evaluate_program(artifact, small)
    assert (report.n, [row.name for row in report.rows]) == (24, [artifact.name])
    with pytest.raises(BenchmarkError, match="was made with 18 of these 18 rows"):
        evaluate_program(artifact, small, split="val")


@pytest.mark.parametrize("module", [RootCauseClassifier, RuleProposer])
def test_evaluate_program_scores_a_module(module: type, small: Path) -> None:
    """It is exported first."""
    assert evaluate_program(module(), small).n == len(labelled(small, "test"))


def test_evaluate_program_scores_a_module_made_for_ones_own_taxonomy(tmp_path: Path) -> None:
    """On a single file, all of it."""
    taxonomy, path = ten_rows(tmp_path)
    assert evaluate_program(RootCauseClassifier(load_taxonomy(str(taxonomy))), path).n == 10
