"""A study as files: `report.md`, `pareto.png` and `study.json`. Names and numbers only, no failure text, no machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark.markdown import safe, table
from dspy_reflex.benchmark.pictures import blank, png
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.tune.outcome import Outcome, Tried
from dspy_reflex.optimize.tune.space import words
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES

MEANING = {
    "complete": "with a score",
    "pruned": "settings that come to no program",
    "failed": "no score, for another reason",
    "retried": "left by a worker, and run again under another number",
    "surplus": "more than asked for, ended at once",
    "running": "at a worker, or left by one not long ago",
    "waiting": "for a worker",
}
CHOSEN_ON = (
    "Scores are on the rows that every trial was chosen on: the best of many looks better there than it is. Measure a "
    "program on rows that it has not seen before it is used: `dspy-reflex benchmark` and `dspy-reflex promote`."
)
OFFLINE = "`offline` is a deterministic in-context learner and no language model: what suits it says nothing about one."


def write_report(found: Outcome, out: Path) -> None:
    """Write the three files.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    files = {
        "pareto.png": png(_figure(found)),
        "report.md": report(found).encode(),
        "study.json": (json.dumps(found.to_json(), indent=1, ensure_ascii=False) + "\n").encode(),
    }
    for name, content in files.items():
        write_atomic(out / name, content)


def report(found: Outcome) -> str:
    """The Markdown text."""
    config = found.config
    offline = [OFFLINE] if {*OFFLINE_NAMES} & {*config["lms"], *config["prompt_lms"]} else []
    return "\n\n".join([
        f"# Search over settings: {safe(found.study)}",
        f"{found.planned} trials of {config['program']} on {safe(config['dataset'])}, each one compile, by {found.workers} "
        f"worker(s), to the highest {config['metric']} and the fewest tokens a call. {CHOSEN_ON}",
        *offline,
        "## Trials", _counts_table(found),
        "## Front", "No other trial has a higher score for as few tokens. " + _before(found), _front_table(found),
        "![The front](pareto.png)",
        "## All trials", _all_table(found),
    ]) + "\n"  # fmt: skip


def _counts_table(found: Outcome) -> str:
    """How many trials are in each state."""
    shown = [
        (state, str(count), MEANING[state]) for state, count in found.counts.items() if count or state != "surplus"
    ]
    return table(("state", "trials", ""), shown)


def front_lines(found: Outcome) -> list[str]:
    """The front for a terminal, one trial a line."""
    return [
        f"trial {one.number}: {_score(one)}, {_tokens(one)} tokens a call, {words(one.choices)}" for one in found.best
    ]


def _front_table(found: Outcome) -> str:
    head = ("trial", "settings", found.config["metric"], "tokens a call", "compile calls", "program")
    return table(head, [
        (str(one.number), words(one.choices), _score(one), _tokens(one), _or_blank(one.calls), one.program or "")
        for one in found.best
    ])  # fmt: skip


def _before(found: Outcome) -> str:
    return "".join(f"Uncompiled, {safe(lm)} scores {score:.3f}. " for lm, score in found.uncompiled.items()).strip()


def _all_table(found: Outcome) -> str:
    head = ("trial", "state", "again", "settings", found.config["metric"], "tokens a call", "worker", "")
    return table(head, [
        (
            str(one.number), one.state, _or_blank(one.again), words(one.choices), _score(one), _tokens(one),
            _or_blank(one.worker), _remark(one),
        )
        for one in found.tried
    ])  # fmt: skip


def _remark(one: Tried) -> str:
    return one.reason or (f"as trial {one.same_as}, not compiled again" if one.same_as is not None else "")


def _score(one: Tried) -> str:
    if one.score is None:
        return ""
    low, high = one.interval or (one.score, one.score)
    return f"{one.score:.3f} ({low:.3f}, {high:.3f})"


def _tokens(one: Tried) -> str:
    return "" if one.tokens_per_call is None else f"{one.tokens_per_call:.0f}"


def _or_blank(value: int | None) -> str:
    return "" if value is None else str(value)


def _figure(found: Outcome) -> Any:
    figure = blank(7.0, 5.0)
    axes: Any = figure.subplots()
    scored = [one for one in found.tried if one.score is not None]
    for number, name in enumerate(found.config["optimizers"]):
        mine = [one for one in scored if one.choices["optimizer"] == name]
        axes.scatter(
            [one.tokens_per_call for one in mine],
            [one.score for one in mine],
            label=name,
            color=f"C{number}",
            alpha=0.8,
        )
    axes.step(
        [one.tokens_per_call for one in found.best], [one.score for one in found.best], where="post", color="0.6", zorder=0,
        label="front",
    )  # fmt: skip
    for lm, score in found.uncompiled.items():
        axes.axhline(score, color="0.6", linestyle=":", zorder=0, label=f"uncompiled, {lm}")
    for one in found.best:
        axes.annotate(str(one.number), (one.tokens_per_call, one.score), xytext=(4, 4), textcoords="offset points")
    axes.set_xlabel("tokens a call")
    axes.set_ylabel(found.config["metric"])
    axes.set_title(f"{found.study}: {len(scored)} scored trials", parse_math=False)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure
