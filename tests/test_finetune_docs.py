"""What docs/finetune.md says of formats, tasks and figures is what the code and the committed results say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

from dspy_reflex.finetune.formats.registry import NAMES
from dspy_reflex.finetune.row import Task

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "finetune.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


def result(run: str) -> dict[str, Any]:
    """A committed result."""
    return json.loads((ROOT / "experiments" / run / "result.json").read_text())


def test_every_format_and_every_task_has_its_row() -> None:
    rows = {name for row in re.findall(r"^\| (`[^|]+) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert rows == {*NAMES, *get_args(Task)}


def test_losses_are_the_measured_ones() -> None:
    for first, last in result("trainers")["loss_first_last"].values():
        assert f"from {first:.3f} to {last:.3f}" in WORDS


def test_scores_are_the_measured_ones() -> None:
    told = result("finetune-signal")
    assert f"{told['rows']} exported classification rows" in WORDS
    for one in told["scores"]:
        low, high = one["interval"]
        assert f"{one['macro_f1']:.2f} [{low:.2f}, {high:.2f}]" in WORDS
