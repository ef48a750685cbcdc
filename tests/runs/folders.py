"""Run folders by hand: what a compile leaves behind, from small data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dspy_reflex.runtime.artifact import Artifact, dumps
from tests.benchmark.contest import artifact

RULES = "Name the colour.\n- red: warm\n- green: cool\n- blue: cold"
CUES = f"{RULES}\n\nCues:\n- red: fire +0.9"
HOSTILE = (
    "</pre><script>alert(1)</script><img src=http://evil.example/x>\n```\n# [[ ## root_cause ## ]] \x1b[31m|[x](y)"
)
"""Markup, a fence, a field header, an escape sequence and a link: as a failure's text may have it."""


def demo(number: int, label: str, *, worked: bool = False) -> dict[str, Any]:
    """A demo as artefacts have it."""
    return {"id": f"t{number}", "bootstrapped": worked, "values": {"task": "t", "root_cause": label}}


DEMOS = [demo(0, "red", worked=True), demo(1, "red"), demo(2, "green")]


def prediction(number: int, gold: str, told: str | None, confidence: float | None = 0.7, **more: Any) -> dict[str, Any]:
    """A line of `predictions.jsonl`."""
    problem = "" if told else "unparsable"
    return {"id": f"v{number}", "gold": gold, "told": told, "confidence": confidence, "problem": problem, **more}


PREDICTIONS = [
    prediction(0, "red", "red", 0.95),
    prediction(1, "red", "red", 0.9),
    prediction(2, "red", "green", 0.55),
    prediction(3, "green", "green", 0.6),
    prediction(4, "green", "blue", 0.85),
    prediction(5, "green", None, None),
    prediction(6, "blue", "blue", 0.8),
    prediction(7, "blue", "blue", 0.35),
]


def result(**changed: Any) -> dict[str, Any]:
    """A `result.json`."""
    tried = {"rows": 8, "dropped": False, "best": False, "demos": 3}
    return {
        "artifact": "programs/root_cause/0123456789ab.json",
        "program": "root_cause@0123456789ab",
        "run": "experiments/mine",
        "optimizer": "miprov2",
        "partial": None,
        "scores": {
            "metric": "macro-F1", "value": 0.62, "interval": [0.4, 0.8], "n": 8, "on": "val (chosen on it)",
            "uncompiled": {"metric": "macro-F1", "value": 0.31, "interval": [0.1, 0.5], "n": 8, "on": "val"},
        },
        "calls": 40,
        "candidates": [
            {**tried, "candidate": 0, "score": 0.3, "calls": 8, "tokens": 800, "prompt_tokens": 120, "demos": 0},
            {**tried, "candidate": 1, "score": 0.2, "calls": 12, "tokens": 1300, "prompt_tokens": 300, "rows": 4, "dropped": True},
            {**tried, "candidate": 2, "score": 0.62, "calls": 20, "tokens": 2600, "prompt_tokens": 310, "best": True},
        ],
        "ledger": {
            "phases": {
                "bootstrap": {"calls": 4, "input_tokens": 400, "output_tokens": 80},
                "evaluate": {"calls": 36, "input_tokens": 3900, "output_tokens": 720, "unusable": 1, "replayed": 10},
            },
            "models": {"fake/1": {"calls": 40, "input_tokens": 4300, "output_tokens": 800, "usd": 0.0125}},
            "seconds": 1.5,
        },
        "coverage": {"red": 2, "green": 1, "blue": 0},
        "calibration": {"kind": "temperature", "temperature": 1.7},
        "warnings": [f"one row was odd: {HOSTILE}"],
        "learning_curve": [
            {"rows": 10, "value": 0.4, "interval": [0.2, 0.6]},
            {"rows": 20, "value": 0.62, "interval": [0.4, 0.8]},
        ],
        **changed,
    }  # fmt: skip


def config(**changed: Any) -> dict[str, Any]:
    """A `config.json`."""
    settings = {"max_demos": 3, "trials": 3}
    asked = {"program": "root_cause", "datasets": ["mine"], "optimizer": "miprov2", "lm": "fake/1", "prompt_lm": None}
    return {**asked, "seed": 0, "settings": settings, **changed}


def write_run(
    folder: Path,
    *,
    predictions: Sequence[dict[str, Any]] = PREDICTIONS,
    program: Artifact | None = None,
    demos: Sequence[dict[str, Any]] = DEMOS,
    instructions: str = CUES,
    asked: dict[str, Any] | None = None,
    **changed: Any,
) -> Path:
    """A whole run folder; `changed` are fields of its result."""
    folder.mkdir(parents=True)
    compiled = program or artifact(instructions=instructions, demos=list(demos))
    (folder / "config.json").write_text(json.dumps(asked or config()), encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(result(**changed)), encoding="utf-8")
    (folder / "program.json").write_text(dumps(compiled), encoding="utf-8")
    (folder / "uncompiled.json").write_text(dumps(artifact(instructions=RULES)), encoding="utf-8")
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in predictions)
    (folder / "predictions.jsonl").write_text(lines, encoding="utf-8")
    return folder
