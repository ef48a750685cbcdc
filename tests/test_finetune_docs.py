"""What docs/finetune.md says of formats, trainers, signal and speed is what the code and the committed results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dspy_reflex.finetune.card import SIGNAL
from dspy_reflex.finetune.formats.registry import NAMES, format_of
from dspy_reflex.finetune.guard import WORDS as RUN
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import TASKS, Kind

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "finetune.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
TO: dict[Kind, str] = {
    "sft": "imitate", "preference": "prefer", "unpaired": "like or dislike", "rewarded": "weigh by reward",
}  # fmt: skip


def result(name: str) -> dict[str, Any]:
    """A committed result."""
    return json.loads((ROOT / "experiments" / name / "result.json").read_text(encoding="utf-8"))


def signal(told: dict[str, Any]) -> str:
    """What a small model learned from exported rows alone."""
    learned, uncompiled, constant = (
        f"{one['macro_f1']:.2f} [{one['interval'][0]:.2f}, {one['interval'][1]:.2f}]" for one in told["scores"]
    )
    return (
        f"TF-IDF with logistic regression that learned from {told['rows']} of them, and from nothing else, names the root cause "
        f"of {told['n']} unseen failures of the bundled set with a macro-F1 of {learned}; the uncompiled program on the offline "
        f"model has {uncompiled}, the constant answer {constant}."
    )


def throughput(told: dict[str, Any]) -> str:
    """How fast, and with how much memory."""
    by_name = {one["format"]: one for one in told["formats"]}
    first, plain = by_name["trl"], by_name["json"]
    slowest = min(told["streamed"], key=lambda one: one["rows_per_s"])
    most = max(one["peak_mb"] for one in told["streamed"])
    return (
        f"A store of {told['failures']:,} corrected failures became {first['rows']:,} rows in TRL's format at "
        f"{first['rows_per_s']:,} rows a second, with {first['peak_mb']} MB of memory at most ({first['peak_mb_of_a_tenth']} MB "
        f"for a tenth of it), all checks included; to read and write the rows with `json` alone goes at "
        f"{plain['rows_per_s']:,}. Parquet takes {by_name['parquet']['peak_mb']} MB and goes at "
        f"{by_name['parquet']['rows_per_s']:,}, OpenAI's format at {by_name['openai']['rows_per_s']:,}. Checked, put into a "
        f"format and written, {slowest['rows']:,} rows go at {slowest['rows_per_s']:,} a second in the slowest of the "
        f"{len(told['streamed'])} formats ({slowest['format']}), with {most} MB at most."
    )


def test_the_formats_are_those_of_the_code() -> None:
    lines = [
        f"| `{name}` | {format_of(name).about} | {', '.join(TO[kind] for kind in format_of(name).shapes)} |"
        for name in NAMES
    ]
    assert "\n".join(lines) in PAGE


def test_the_tasks_are_those_of_the_code() -> None:
    assert [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `")][: len(TASKS)] == list(TASKS)


def test_shares_and_runs_are_those_of_the_code() -> None:
    shares = Plan().shares
    assert (shares.without_rule, shares.controls, Plan().split) == (0.5, 0.2, 0.1)
    assert "Half of the prompts leave the rule out" in TEXT
    assert "A fifth of the corrections" in TEXT
    assert f"a run of {RUN} words" in TEXT


def test_losses_are_those_that_were_measured_and_fell() -> None:
    ends = result("trainers")["loss_first_last"]
    assert "\n".join(f"| {name} | {first:.3f} | {last:.3f} |" for name, (first, last) in ends.items()) in PAGE
    assert all(last < first for first, last in ends.values())
    assert all(n > 0 for n in result("trainers")["rendered"].values())


def test_the_signal_is_what_was_measured_in_page_and_card() -> None:
    told = result("finetune-signal")
    assert signal(told) in TEXT
    assert signal(told) in SIGNAL
    assert all(low > 0 for low, _ in told["leads"].values())


def test_the_throughput_is_what_was_measured() -> None:
    assert throughput(result("export-throughput")) in TEXT
