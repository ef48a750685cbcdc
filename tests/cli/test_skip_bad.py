"""`--skip-bad`: the good rows are still usable, and what was left out is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import Reflex
from tests.optimize.compiles import take, write_rows


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Forty-eight good rows, then a torn one."""
    path = write_rows(tmp_path / "rows.jsonl", take(0, 8))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"task": "t", "actual_out\n')
    return path


def commands(torn: Path, cause: Path, rule: Path, out: Path) -> dict[str, tuple[object, ...]]:
    """One call of each command that reads rows."""
    return {
        "compile": ("compile", "root_cause", "--dataset", torn, "--optimizer", "labeled_few_shot", "--out", out),
        "benchmark": ("benchmark", "root_cause", "--dataset", torn, "--program", cause, "--allow-seen"),
        "diagnose": ("diagnose", torn, "--program", cause),
        "propose": ("propose", torn, "--program", rule, "--cause-program", cause),
    }


@pytest.mark.parametrize("name", ["compile", "benchmark", "diagnose", "propose"])
def test_one_bad_line_stops_a_command_unless_it_is_to_be_skipped(
    name: str, torn: Path, cause: Path, rule: Path, tmp_path: Path, reflex: Reflex
) -> None:
    """The line is named in both cases."""
    command = commands(torn, cause, rule, tmp_path / "programs")[name]
    assert f"{torn}:49: not JSON" in reflex(*command).refusal
    done = reflex(*command, "--skip-bad")
    assert done.code == 0, done.err
    assert f"warning: skipped {torn}:49: not JSON" in done.err
    assert "warning: 1 lines were skipped" in done.err
