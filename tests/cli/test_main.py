"""The command as a whole: help, versions, mistakes on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex import __version__
from dspy_reflex.cli.data import group
from dspy_reflex.cli.main import COMMANDS
from dspy_reflex.cli.review import group as review
from tests.cli.runner import Reflex, process


def test_help_lists_every_command(reflex: Reflex) -> None:
    """In the order of the work."""
    done = reflex("--help")
    assert done.code == 0
    lines = [line.split()[0] for line in done.out.partition("Commands:")[2].splitlines() if line.strip()]
    assert [line for line in lines if line in COMMANDS] == list(COMMANDS)


GROUPS = ("programs", "experiments", "data", "review", "rules", "failures", "demo")


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        "programs list",
        "programs show",
        "programs verify",
        "programs export",
        "programs history",
        "programs rollback",
        *(f"experiments {verb}" for verb in ("list", "show", "compare", "log")),
        *(f"data {verb}" for verb in group.COMMANDS),
        *(f"failures {verb}" for verb in ("list", "show", "search", "import")),
        *(f"review {verb}" for verb in review.COMMANDS),
    ],
)
def test_every_command_has_help_and_json(command: str, reflex: Reflex) -> None:
    """The groups only hold others."""
    done = reflex(*command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert ("--json" in done.out) == (command not in GROUPS)


def test_version(reflex: Reflex) -> None:
    """As `--version` everywhere."""
    assert __version__ in reflex("--version").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diagnose", "x.jsonl", "--fast"], "No such option '--fast'"),
        (["dignose"], "No such command 'dignose'"),
        (["failures", "show"], "Missing argument 'FAILURE_ID'"),
        (["compile", "cause"], "'cause' is not one of 'root_cause', 'rule'"),
        (["compile", "root_cause", "--optimizer", "magic"], "'magic' is not one of"),
        (["compile", "root_cause", "--seed", "-1"], "-1 is not in the range"),
        (["compile", "root_cause", "--leave-out", "trail"], "'trail' is not FIELD=VALUE, such as source="),
        (["diagnose", "x.jsonl", "--concurrency", "0"], "0 is not in the range"),
        (["diagnose", "x.jsonl", "--max-usd", "-3"], "-3.0 is not in the range"),
        (["programs", "export", "x.json", "--out", "y"], "Missing option '--dspy'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(
    arguments: list[str], said: str, reflex: Reflex, tmp_path: Path
) -> None:
    """Exit code 2; nothing on stdout, nothing written."""
    assert said in reflex(*arguments).refusal
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_no_traceback(failures: Path, cause: Path, tmp_path: Path) -> None:
    """As in `dspy-reflex ... | head -1`."""
    before = "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1)"
    done = process(tmp_path, "diagnose", failures, "--program", cause, "--json", before=before)
    assert done.code != 0
    assert "Traceback" not in done.err
