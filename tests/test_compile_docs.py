"""What `docs/compile.md` says of optimizers and of their cost is what the registry says and what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.optimize.optimizers import OPTIMIZERS
from tests import doc_tables

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "compile.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


def result(run: str) -> Any:
    """A committed result."""
    return json.loads((ROOT / "experiments" / run / "result.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_table_of_optimizers_says_what_help_says(name: str) -> None:
    """What it learns, and when to pick it."""
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}` | ") and line.count("|") == 5)
    _, _, learns, _, pick_when, _ = (cell.strip().replace("`", "") for cell in row.split("|"))
    assert (learns, pick_when) == (OPTIMIZERS[name].learns, OPTIMIZERS[name].pick_when)


def test_the_table_of_scores_is_the_committed_result() -> None:
    """Number by number; of all optimizers."""
    lines = result("optimizers")["lines"]
    assert {line["optimizer"] for line in lines} == {"uncompiled", *OPTIMIZERS}
    splits = ("test", "test_hard")
    folder = ROOT / "datasets" / "failures"
    sizes = {split: len((folder / f"{split}.jsonl").read_bytes().splitlines()) for split in splits}
    table = doc_tables.optimizers_table(lines, sizes)
    assert table in PAGE, table


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ("optimizers", doc_tables.rules_sentence),
        ("optimizers", doc_tables.served_sentence),
        ("compile-cost", doc_tables.cost_sentence),
        ("compile-cost", doc_tables.cost_on_test_sentence),
        ("compile-speed", doc_tables.speed_sentence),
        ("resume-overhead", doc_tables.resume_sentence),
        ("kill-resume", doc_tables.kills_sentence),
        ("real-lm", doc_tables.real_model_sentence),
    ],
)
def test_a_sentence_with_figures_is_the_committed_result(run: str, sentence: Any) -> None:
    """Word for word."""
    told = sentence(result(run))
    assert told in TEXT, told
