"""One trial's compile: in a run folder of its own, or on with what a dead worker left in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dspy_reflex.errors import CompileError, ConfigError
from dspy_reflex.optimize.compile import resume_compile, run_compile
from dspy_reflex.optimize.measure import measure
from dspy_reflex.optimize.models.journal import FILE, Journal
from dspy_reflex.optimize.models.journaled import journaled
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.optimize.options import CONFIG, CompileOptions, CompileResult, options_of
from dspy_reflex.optimize.rows import Rows
from dspy_reflex.optimize.tune.options import TuneOptions
from dspy_reflex.optimize.tune.space import Point

Say = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """What a trial came to."""

    score: float
    tokens_per_call: float
    """Of the program that it made, input and output together."""
    attributes: dict[str, Any]
    """What the study keeps of it beside the two."""


Attempt = Callable[[Point, str, Say], Found]
"""Compile at a place of the space, in a run folder of this name."""


def attempts(options: TuneOptions, val: Rows, out: Path) -> Attempt:
    """Compiles below `out`; tokens are counted on `val`."""

    def attempt(point: Point, name: str, say: Say) -> Found:
        result = _compiled(options.compile_options(point), out / name, say)
        scores = result.scores
        told = {"run": name, "program": result.artifact.name, "calls": result.calls}
        told |= {key: scores[key] for key in ("metric", "interval", "n", "on")}
        told |= {"uncompiled": scores["uncompiled"]["value"]}
        return Found(scores["value"], tokens_per_call(result, val, point.lm, options.threads), told)

    return attempt


def tokens_per_call(result: CompileResult, rows: Rows, lm: str, threads: int) -> float:
    """Mean of what a question to the program takes, input and output; the run's journal has the answers already.

    Raises:
        CompileError: The model does not say what it used.
    """
    ledger = Ledger()
    with closing(Journal(result.run / FILE)) as journal:
        measure(result.artifact, journaled(lm, "measure", journal, ledger), rows, "", threads)
    if not ledger.tokens:
        raise CompileError(f"{lm} does not say how many tokens it used, so its programs' prices cannot be compared")
    return ledger.tokens / ledger.calls


def _compiled(options: CompileOptions, run: Path, say: Say) -> CompileResult:
    out = run / "programs"  # nobody looks for programs there: none becomes current by having been tried
    if not (run / CONFIG).exists():
        return run_compile(options, out=out, run=run, say=say)
    theirs = replace(options_of(run), datasets=options.datasets, threads=options.threads)
    if theirs != options:
        raise ConfigError(f"{run}: holds another study's run; name another --out, or remove the folder")
    return resume_compile(run, out=out, say=say)
