"""One compile from labelled failures to an artefact: read rows, do the work, write what came of it, or go on with it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dspy

from dspy_reflex import __version__
from dspy_reflex.errors import CompileError, ConfigError
from dspy_reflex.evalset.collect import collect
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import check_costs
from dspy_reflex.optimize.models.journal import FILE, Journal
from dspy_reflex.optimize.models.journaled import BATCH_PREFIX
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.optimize.optimizers import optimizer
from dspy_reflex.optimize.optimizers.base import Sizes
from dspy_reflex.optimize.options import (
    CONFIG,
    RESULT,
    CompileOptions,
    CompileResult,
    options_of,
    read_config,
    write_json,
)
from dspy_reflex.optimize.rows import digest, train_and_val
from dspy_reflex.optimize.search.knn import retrieved
from dspy_reflex.optimize.work import Made, Work
from dspy_reflex.runs.report import write_run_report
from dspy_reflex.runtime.artifact import Artifact, dumps, read
from dspy_reflex.runtime.history import first
from dspy_reflex.runtime.library import current, libraries
from dspy_reflex.runtime.lm.connect import connect

PROGRAM, UNCOMPILED, PREDICTIONS, BATCHES = "program.json", "uncompiled.json", "predictions.jsonl", "batches"

Say = Callable[[str], None]
Watch = Callable[[Callable[[], str]], AbstractContextManager[None]]


def run_compile(
    options: CompileOptions, *, out: Path, run: Path, say: Say = lambda _: None, watch: Watch = lambda _: nullcontext()
) -> CompileResult:
    """Compile one program and write its artefact and its run folder.

    Args:
        options: What to compile, from what, how.
        out: Folder for `<program>/<version>.json`; the first program of its model becomes the current one there.
        run: A new folder for the journal, config and result.
        say: Told of progress, a line at a time.
        watch: Given a function that tells in one line where the work is; what it returns is open while that may change.

    Raises:
        CompileError: The compiled program is the uncompiled one, or the folder holds a run already.
        ConfigError: An option cannot be used.
        DatasetError: The rows cannot be used.
        BudgetError: The budget was spent before there was a candidate to keep.
        ModelUnavailableError: A model could not be reached; nothing was written to `out`, and the run can go on.
    """
    if (run / CONFIG).exists():
        raise CompileError(f"{run}: there is a run already; go on with it by --resume {run}, or name another folder")
    return _Compile(options, run, say, watch).run(out)


def resume_compile(
    run: Path,
    *,
    out: Path,
    limits: dict[str, Any] | None = None,
    say: Say = lambda _: None,
    watch: Watch = lambda _: nullcontext(),
) -> CompileResult:
    """Go on with a run that was stopped; one that is finished gives its result without a call.

    Args:
        run: Its folder.
        out: As for `run_compile`.
        limits: Limits of the budget that are to be others than those the run began with.
        say: Told of progress, a line at a time.
        watch: Given a function that tells in one line where the work is; what it returns is open while that may change.

    Raises:
        ReflexError: As `run_compile`; also when the rows are not those that the run began with.
    """
    options = options_of(run)
    budget = replace(options.budget, **(limits or {}))
    return _Compile(replace(options, budget=budget), run, say, watch, rows=read_config(run)["rows"]).run(out)


class _Compile:
    """One sitting of a run: what is read before its work, and written after it."""

    def __init__(self, options: CompileOptions, run: Path, say: Say, watch: Watch, *, rows: str | None = None) -> None:
        """Check all that can be checked before rows are read; `rows` is what a run that goes on must find."""
        self.options, self.place, self.say, self.watch, self.expected_rows = options, run, say, watch, rows
        optimizer(options.optimizer).configured(options.settings)
        options.budget.check(options.models)
        check_costs(options.costs, options.taxonomy.labels)
        if options.batch and not options.lm.startswith(BATCH_PREFIX):
            raise ConfigError(f"--batch: {options.lm} has no batches; leave it out, or use a model of {BATCH_PREFIX}…")

    def run(self, out: Path) -> CompileResult:
        current(out, self.options.program)  # a damaged library is said before anything is paid for
        artifact, told = self._finished() or self._worked()
        path = out / artifact.program / f"{artifact.version}.json"
        write_atomic(path, dumps(artifact).encode())
        doubts = self._doubts(artifact, told, out)
        for warning in doubts:
            self.say(f"warning: {warning}")
        write_json(self.place / RESULT, {**told, "artifact": str(path), "run": str(self.place)})
        write_run_report(self.place)
        return CompileResult(artifact, path, self.place, {**told, "warnings": [*told["warnings"], *doubts]})

    def _finished(self) -> tuple[Artifact, dict[str, Any]] | None:
        """What the run came to, if it has come to its end."""
        if not (self.place / RESULT).exists():
            return None
        told = json.loads((self.place / RESULT).read_text(encoding="utf-8"))
        return None if told["partial"] else (read(self.place / PROGRAM), told)

    def _worked(self) -> tuple[Artifact, dict[str, Any]]:
        options = self.options
        for name in options.models:  # what is not set up is said before a row is read
            connect(name)
        found = collect(
            options.datasets, options.taxonomy, self.say, left_out=options.leave_out, skip_bad=options.skip_bad
        )
        train, val = train_and_val(found.sets, options.seed)
        for rows in (train, val or train):  # what cannot be used is said before a file is made
            examples_for(options.program, rows, options.seed)
        chosen = optimizer(options.optimizer)
        chosen.check(chosen.configured(options.settings), Sizes(len(train), len(val or train)))
        if self.expected_rows not in (None, digest(train, val)):
            raise CompileError(f"{self.place}: the rows are not those that this run began with; start the compile anew")
        ledger, started = Ledger(options.budget, options.threads), time.monotonic()
        with closing(Journal(self.place / FILE)) as journal:
            work = Work(options, journal, ledger, self.say, self.place / BATCHES)
            self._write_config(digest(train, val))
            self.say(f"run in {self.place}; if it is interrupted, go on with --resume {self.place}")
            try:
                with self.watch(work.status):
                    made = work.made(train, val, found.name)
            except Stop as stopped:
                raise stopped.error from None
            finally:
                ledger.close()
        self._write_program(made)
        return made.artifact, {
            "program": made.artifact.name,
            "optimizer": options.optimizer,
            "partial": made.partial,
            "scores": {**made.measured.scores, "uncompiled": made.before.scores},
            "calls": ledger.calls,
            "candidates": made.candidates,
            "ledger": {**ledger.to_json(), "seconds": round(time.monotonic() - started, 1)},
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "coverage": self._coverage(made),
            "calibration": made.calibration,
            "learning_curve": made.curve,
            "warnings": [*found.warnings, *made.warnings],
        }

    def _doubts(self, artifact: Artifact, told: dict[str, Any], out: Path) -> list[str]:
        """Make the program current where that needs no further test, and say why if not."""
        gain = told["scores"]["value"] - told["scores"]["uncompiled"]["value"]
        if told["partial"]:
            return [f"{artifact.name} is partial: {told['partial']}; it is not made current"]
        if gain <= 0:
            how = "worse" if gain < 0 else "no better"
            return [
                f"{artifact.name} is {how} than the uncompiled program on {told['scores']['on']}; it is not made current"
            ]
        if first(out, artifact) or current(out, artifact.program)[artifact.model] == artifact.version:
            return _instead(artifact, out)
        return [
            f"{artifact.model} has a current program; `dspy-reflex promote` tells whether {artifact.name} is better"
        ]

    def _coverage(self, made: Made) -> dict[str, int]:
        """Demos of each root cause, those without one included; retrieved ones are counted over all prompts of val."""
        measured_on = examples_for(self.options.program, made.measured.rows, self.options.seed)
        demos = [*made.artifact.data["demos"], *retrieved(made.artifact, [row.inputs() for row in measured_on])]
        counts = Counter(demo["values"].get("root_cause") for demo in demos)
        return {label: counts[label] for label in made.artifact.labels}

    def _write_config(self, rows: str) -> None:
        versions = {"dspy": dspy.__version__, "dspy_reflex": __version__}
        write_json(self.place / CONFIG, {**self.options.to_json(), "rows": rows, "versions": versions})

    def _write_program(self, made: Made) -> None:
        write_atomic(self.place / PROGRAM, dumps(made.artifact).encode())
        write_atomic(self.place / UNCOMPILED, dumps(made.plain).encode())
        lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in made.measured.predictions)
        write_atomic(self.place / PREDICTIONS, lines.encode())


def _instead(artifact: Artifact, out: Path) -> list[str]:
    """Which program is not used any more, where `out` is looked through before the library that has it."""
    places = [place.resolve() for place in libraries()]
    behind = places[places.index(out.resolve()) + 1 :] if out.resolve() in places else []
    for version in (current(place, artifact.program).get(artifact.model) for place in behind):
        if version and version != artifact.version:
            other = f"{artifact.program}@{version}"
            return [
                f"{artifact.name} is used here from now on instead of {other}; `dspy-reflex benchmark {artifact.program} "
                f"--program {artifact.name} --program {other}` compares them"
            ]
    return []
