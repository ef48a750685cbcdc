"""The card of an export: what is in it, for people, and which files are what, for `datasets`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dspy_reflex.finetune.formats.base import Format
from dspy_reflex.finetune.plan import Plan

INTRO = """# Training rows of approved rules

Written by `dspy-reflex export --format {name}`, for {about}. Each row rests on failures of an agent, and on a rule against them
that a person approved and nobody took back, or on a cause that a person named. `lineage.jsonl` has a line for each row:
what it rests on, and its licence, {licence}. Secrets and personal data that look like such were taken out; read some rows
before you share them.
"""
SIGNAL = (
    "Rows like the `classify` ones carry signal: TF-IDF with logistic regression that learned from 648 of them, and from "
    "nothing else, names the root cause of 180 unseen failures of the bundled set with a macro-F1 of 0.46 [0.39, 0.53]; "
    "the uncompiled program on the offline model has 0.35 [0.28, 0.42], the constant answer 0.05 [0.04, 0.06]."
)
"""What `experiments/finetune-signal` measured."""


@dataclass(frozen=True)
class Contents:
    """What the card tells of an export."""

    rows: Mapping[str, int]
    """By kind and split, as `sft/train`."""
    tasks: Mapping[str, int]
    left_out: Mapping[str, int]
    """By reason."""
    redacted: Mapping[str, int]
    """What was taken out, by kind."""
    tokens: Mapping[str, Mapping[str, int]]
    """By kind: least, median, 95th percentile, most and total, estimated from characters."""
    withdrawn: Sequence[str]
    """Proposals whose rows an earlier export had, and that may not be taught any more."""


def card(form: Format, told: Contents, plan: Plan, licence: str) -> str:
    """The text of README.md."""
    intro = _front(form, told.rows, licence) + INTRO.format(name=form.name, about=form.about, licence=licence)
    return "\n".join([intro, *_sections(told, plan)]) + "\n"


def _sections(told: Contents, plan: Plan) -> Iterator[str]:
    yield from _table("rows", told.rows)
    yield from _table("task", told.tasks)
    yield from ["## How they were made", "", *_made(plan), ""]
    if "classify" in told.tasks:
        yield from [SIGNAL, ""]
    yield from ["## Sizes", "", *(_size(kind, spread) for kind, spread in told.tokens.items()), ""]
    yield from [
        "## Left out",
        "",
        *_counted(told.left_out),
        "",
        "## Taken out of texts",
        "",
        *_counted(told.redacted),
        "",
    ]
    yield from ["## Withdrawn", "", *([f"- {one}" for one in told.withdrawn] or ["- nothing"])]


def _made(plan: Plan) -> Iterator[str]:
    shares = plan.shares
    yield f"- The rule is left out of the prompt in {shares.without_rule:.0%} of corrected situations."
    yield f"- {shares.controls:.0%} of them are shown once more under a rule that is not about them."
    if isinstance(plan.split, datetime):
        yield f"- Families that began at {plan.split.isoformat()} or later are for validation."
    else:
        yield f"- {plan.split:.0%} of families are for validation; rows of one family are in one split."


def _table(name: str, counts: Mapping[str, int]) -> list[str]:
    return [f"| {name} | |", "| --- | --- |", *(f"| {one} | {n:,} |" for one, n in counts.items()), ""]


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"- {one}: {n:,}" for one, n in counts.items()] or ["- nothing"]


def _size(kind: str, spread: Mapping[str, int]) -> str:
    return (
        f"- {kind}: {spread['least']:,} to {spread['most']:,} tokens a row, median {spread['median']:,}, "
        f"95th percentile {spread['p95']:,}, in all {spread['total']:,}, counted as four characters a token"
    )


def _front(form: Format, rows: Mapping[str, int], licence: str) -> str:
    """What `datasets.load_dataset` reads: a configuration for each kind."""
    by_kind: dict[str, list[str]] = {}
    for file in rows:
        kind, _, split = file.partition("/")
        by_kind.setdefault(kind, []).append(split)
    lines = ["---", f"license: {licence}", *(["configs:"] if by_kind else [])]
    usual = "sft" if "sft" in by_kind else next(iter(by_kind), "")
    for kind, splits in by_kind.items():
        lines += [f"- config_name: {kind}", *(["  default: true"] if kind == usual else []), "  data_files:"]
        for split in splits:
            lines += [f"  - split: {split}", f"    path: data/{kind}/{split}.{form.suffix}"]
    return "\n".join([*lines, "---", "", ""])
