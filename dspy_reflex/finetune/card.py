"""The card of an export: what is in it, for people, and which files are what, for `datasets`."""

from __future__ import annotations

from collections.abc import Mapping

from dspy_reflex.finetune.formats.base import Format

INTRO = """# Training rows of approved rules

Written by `dspy-reflex export --format {name}`, for {about}. Each row rests on a failure of an agent, a rule against it that
was approved and not taken back, and what a reviewer wrote that should have been done. `lineage.jsonl` has a line for each row.
Secrets and personal data that look like such were taken out; read some rows before you share them.
"""


def card(
    form: Format,
    rows: Mapping[str, int],
    left_out: Mapping[str, int],
    tokens: Mapping[str, Mapping[str, int]],
    licence: str,
) -> str:
    """The text of README.md."""
    counts = ["| rows | |", "| --- | --- |", *(f"| {where} | {n:,} |" for where, n in rows.items())]
    sizes = [
        f"- {kind}: {spread['least']:,} to {spread['most']:,} tokens a row, median {spread['median']:,}, "
        f"95th percentile {spread['p95']:,}, in all {spread['total']:,}, counted as four characters a token"
        for kind, spread in tokens.items()
    ]
    missing = [f"- {why}: {n:,}" for why, n in left_out.items()] or ["- nothing"]
    intro = INTRO.format(name=form.name, about=form.about)
    parts = [_front(form, rows, licence) + intro, *counts, "", "## Sizes", "", *sizes, "", "## Left out", "", *missing]
    return "\n".join(parts) + "\n"


def _front(form: Format, rows: Mapping[str, int], licence: str) -> str:
    """What `datasets.load_dataset` reads: a configuration for each kind."""
    kinds = sorted({where.partition("/")[0] for where in rows})
    lines = ["---", f"license: {licence}", "configs:"]
    for kind in kinds:
        default = ["  default: true"] if (kind == kinds[-1] and "sft" not in kinds) or kind == "sft" else []
        lines += [f"- config_name: {kind}", *default, "  data_files:"]
        splits = [where.partition("/")[2] for where in rows if where.startswith(f"{kind}/")]
        lines += [line for split in splits for line in _file(form, kind, split)]
    return "\n".join([*lines, "---", "", ""])


def _file(form: Format, kind: str, split: str) -> list[str]:
    return [f"  - split: {split}", f"    path: data/{kind}/{split}.{form.suffix}"]
