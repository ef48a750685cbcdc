"""Where the compile wing's packages are missing: one sentence that names the extra, and the run wing goes on working."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import process


def without(*packages: str) -> str:
    """Python that makes packages unimportable."""
    return f"import sys; sys.modules.update(dict.fromkeys({packages!r}))"


@pytest.mark.parametrize("package", ["dspy", "sklearn", "optuna"])
def test_compile_is_one_sentence_that_names_the_extra(package: str, small: Path, tmp_path: Path) -> None:
    """Whichever of its packages is missing, before anything is done."""
    done = process(tmp_path, "compile", "root_cause", "--dataset", small, "--trials", 2, before=without(package))
    assert "[compile]" in done.refusal
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["dspy", "sklearn"])
def test_benchmark_is_one_sentence_that_names_the_extra(package: str, small: Path, cause: Path, tmp_path: Path) -> None:
    """The same."""
    done = process(tmp_path, "benchmark", "root_cause", "--dataset", small, "--program", cause, before=without(package))
    assert "[compile]" in done.refusal
    assert done.err.count("\n") == 1


def test_a_report_without_a_plotter_is_one_sentence(small: Path, cause: Path, tmp_path: Path) -> None:
    """matplotlib draws the confusion matrix."""
    done = process(
        tmp_path, "benchmark", "root_cause", "--dataset", small, "--program", cause, "--report", "here",
        before=without("matplotlib"),
    )  # fmt: skip
    assert "[compile]" in done.refusal


def test_verify_is_one_sentence_that_names_the_extra(cause: Path, tmp_path: Path) -> None:
    """It compares with the installed DSPy, which there is none of."""
    assert "[compile]" in process(tmp_path, "programs", "verify", cause, before=without("dspy")).refusal


@pytest.mark.parametrize(
    "name", ["compile_program", "evaluate_program", "RootCauseClassifier", "RuleProposer", "publish"]
)
def test_the_library_names_the_extra_too(name: str, tmp_path: Path) -> None:
    """As an error that one can catch."""
    before = f"""
{without("dspy")}
import dspy_reflex
from dspy_reflex.errors import MissingExtraError
try:
    dspy_reflex.{name}
except MissingExtraError as error:
    print(error)
    sys.exit(0)
sys.exit(1)
"""
    done = process(tmp_path, before=before)
    assert done.code == 0, done.err
    assert "[compile]" in done.out


def test_diagnose_propose_and_list_work_without_it(
    cause: Path, rule: Path, failures: Path, small: Path, tmp_path: Path
) -> None:
    """Nothing of the compile wing is even looked for."""
    del small
    missing = without("dspy", "sklearn", "numpy", "pandas", "optuna", "matplotlib", "scipy", "datasets", "litellm")
    for arguments in (
        ["diagnose", failures, "--program", cause],
        ["propose", failures, "--program", rule, "--cause-program", cause],
        ["programs", "list"],
        ["programs", "show", cause],
        ["programs", "export", cause, "--dspy", "--out", "state.json"],
    ):
        done = process(tmp_path, *arguments, before=missing)
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
