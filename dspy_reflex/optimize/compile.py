"""One compile from labelled failures to an artefact: split, optimize, export, measure, write."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from dspy_reflex.errors import CompileError, DatasetError
from dspy_reflex.evalset.collect import collect
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure
from dspy_reflex.evalset.load import SINGLE_SPLIT
from dspy_reflex.evalset.split import folds, split_rows
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.dspy_lm import SAID_CHARS, NoAnswer, connect_lm, model_name
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.ledger import Ledger
from dspy_reflex.optimize.measure import Measured, measure
from dspy_reflex.optimize.metrics import CauseMetric, rule_metric
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.optimizers import Setting, optimizer
from dspy_reflex.optimize.publish import adapter, publish
from dspy_reflex.optimize.trials import Trials
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import Artifact, dumps
from dspy_reflex.runtime.library import current, set_current
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES

VAL_SHARE = 0.2
"""Share of a single file's rows that programs are chosen on; the others are what they learn from."""
FEW_ROWS = 40
"""Below this a val split decides nothing: every row is learnt from, and the score is cross-validated."""
FOLDS = 5
VAL = "val (chosen on it)"
"""What scores on the val split are called: the best of several candidates looks better there than it is."""
VIEW_BATCH = 10
"""Examples that a language model is shown at once when it writes instructions; the offline learner reads them all."""

KEPT_APART = ("test", "test_hard")
"""Splits of a folder that nothing may learn from, nor from a row that shares a unit with one of theirs."""

Say = Callable[[str], None]
Rows = Sequence[LabelledFailure]


@dataclass(frozen=True)
class CompileOptions:
    """Everything a compile depends on."""

    program: str
    """`root_cause` or `rule`."""
    datasets: tuple[Path, ...]
    """Folders or files of labelled failures, pooled split by split."""
    taxonomy: Taxonomy
    optimizer: str = "miprov2"
    lm: str = "offline"
    """The model that the program is compiled for."""
    prompt_lm: str | None = None
    """The model that writes instructions; None for `lm`."""
    teacher_lm: str | None = None
    """The model that works out demos; None for `lm`."""
    seed: int = 0
    max_demos: int = 16
    trials: int = 12
    threads: int = 1
    leave_out: tuple[tuple[str, str], ...] = ()
    skip_bad: bool = False
    """Leave out rows that cannot be used instead of stopping."""


@dataclass(frozen=True)
class CompileResult:
    """What a compile made and what it cost."""

    artifact: Artifact
    path: Path
    run: Path
    scores: dict[str, Any]
    """Of the compiled program, with `uncompiled` beside it, on the same rows."""
    calls: int
    ledger: dict[str, dict[str, int]]
    trials: list[dict[str, Any]]
    warnings: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; paths as given."""
        return {
            "artifact": str(self.path),
            "program": self.artifact.name,
            "run": str(self.run),
            "scores": self.scores,
            "calls": self.calls,
            "models": self.ledger,
            "trials": self.trials,
            "warnings": list(self.warnings),
        }


def run_compile(options: CompileOptions, *, out: Path, run: Path, say: Say = lambda _: None) -> CompileResult:
    """Compile one program and write its artefact and its run folder.

    Args:
        options: What to compile, from what, how.
        out: Folder for `<program>/<version>.json`; the new program becomes its model's current one there.
        run: Folder for `config.json` and `result.json`.
        say: Told of progress, a line at a time.

    Raises:
        CompileError: The compiled program is the uncompiled one.
        DatasetError: The rows cannot be used.
        ModelUnavailableError: A model could not be reached; nothing was written to `out`.
    """
    return _Compile(options, say).run(out, run)


class _Compile:
    """The models, rows and counts of one compile."""

    def __init__(self, options: CompileOptions, say: Say) -> None:
        self.options = options
        self.say = say
        self.ledger = Ledger()
        self.trials = Trials(say, self.ledger)
        self.choose = optimizer(options.optimizer)
        self.task_lm = connect_lm(options.lm, "task", self.ledger)
        self.prompt_lm = connect_lm(options.prompt_lm or options.lm, "prompt", self.ledger)
        self.teacher_lm = connect_lm(options.teacher_lm, "teacher", self.ledger) if options.teacher_lm else None

    def run(self, out: Path, run: Path) -> CompileResult:
        options = self.options
        found = collect(
            options.datasets, options.taxonomy, self.say, left_out=options.leave_out, skip_bad=options.skip_bad
        )
        warnings = found.warnings
        current(out, self.options.program)  # a damaged library is said before anything is paid for
        train, val = _train_and_val(found.sets, options.seed)
        for rows in (train, val or train):  # what cannot be used is said before a file is made
            examples_for(self.options.program, rows, self.options.seed)
        _write_json(run / "config.json", self._config())
        artifact, scores = self._made(train, val, name=found.name)
        path = out / artifact.program / f"{artifact.version}.json"
        write_atomic(path, dumps(artifact).encode())
        if scores["value"] >= scores["uncompiled"]["value"]:
            set_current(out, artifact)
        else:
            worse = f"{artifact.name} is worse than the uncompiled program; it was written, and is not made current"
            self.say(f"warning: {worse}")
            warnings = (*warnings, worse)
        result = CompileResult(
            artifact, path, run, scores, self.ledger.calls, self.ledger.to_json(), self.trials.rows, warnings
        )
        _write_json(run / "result.json", result.to_json())
        return result

    def _made(self, train: Rows, val: Rows, name: str) -> tuple[Artifact, dict[str, Any]]:
        self.say(f"{len(train)} rows to learn from, {len(val)} to choose on" if val else f"{len(train)} rows, no val")
        module = self._optimized(train, val or train)
        plain = self._published(PROGRAMS[self.options.program](self.options.taxonomy), [])
        compiled = self._published(module, train)
        if (compiled.data["messages"], compiled.data["tail"]) == (plain.data["messages"], plain.data["tail"]):
            raise CompileError(
                f"{self.options.optimizer} changed nothing: no candidate beat the uncompiled program on "
                f"{len(val or train)} rows. Give it more rows, more --trials, or another --optimizer"
            )
        measured = self._measure(compiled, val) if val else self._cross_validated(train)
        before = self._measure(plain, val or train, VAL if val else "train, unseen by it")
        data = {"name": name, "train": [row.row_hash for row in train], "val": [row.row_hash for row in val]}
        final = self._published(module, train, data=data, scores=measured.scores, threshold=measured.threshold)
        return final, {**measured.scores, "uncompiled": before.scores}

    def _optimized(self, train: Rows, val: Rows) -> Any:
        options = self.options
        balanced = options.program == "root_cause"
        setting = Setting(
            metric=CauseMetric.balanced_on(val) if balanced else rule_metric,
            trainset=examples_for(options.program, train, options.seed),
            valset=examples_for(options.program, val, options.seed),
            task_lm=self.task_lm,
            prompt_lm=self.prompt_lm,
            teacher_lm=self.teacher_lm,
            seed=options.seed,
            max_demos=options.max_demos,
            trials=options.trials,
            threads=options.threads,
            view_batch=len(train) if (options.prompt_lm or options.lm) in OFFLINE_NAMES else VIEW_BATCH,
        )
        student = PROGRAMS[options.program](options.taxonomy)
        with _quiet(), dspy.context(lm=self.task_lm, adapter=adapter(), callbacks=[self.trials]):
            try:
                return self.choose(student, setting)
            except NoAnswer as stopped:
                raise stopped.error from None
            except AdapterParseError as error:
                said = " ".join(str(error).split())[:SAID_CHARS]
                raise CompileError(
                    f"{options.optimizer} stopped, a model did not answer in the form asked for: {said}; "
                    "try another --prompt-lm or --optimizer"
                ) from None

    def _cross_validated(self, rows: Rows) -> Measured:
        answers: list[Measured] = []
        for train, held_out in folds(rows, FOLDS, self.options.seed):
            fold = self._published(self._optimized(train, train), train)
            answers.append(self._measure(fold, held_out))
        return Measured.pooled(answers, f"{len(answers)}-fold cross-validation")

    def _measure(self, artifact: Artifact, rows: Rows, on: str = VAL) -> Measured:
        return measure(artifact, self.options.lm, rows, on, self.options.threads, self.ledger)

    def _published(self, module: Any, train: Rows, **known: Any) -> Artifact:
        options = self.options
        settings = {"name": options.optimizer, "max_demos": options.max_demos, "trials": options.trials}
        return publish(
            module,
            options.taxonomy,
            model=model_name(options.lm),
            optimizer={
                **settings,
                "prompt_lm": model_name(options.prompt_lm or options.lm),
                "teacher_lm": model_name(options.teacher_lm or options.lm),
            },
            seed=options.seed,
            trainset=examples_for(options.program, train, options.seed) if train else [],
            **known,
        )

    def _config(self) -> dict[str, Any]:
        config = asdict(self.options) | {"taxonomy": self.options.taxonomy.name}
        return config | {"datasets": [str(path) for path in self.options.datasets], "dspy": dspy.__version__}


def _train_and_val(sets: Sequence[EvalSet], seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to choose on: folders' own splits; those of all files together are made here.

    A unit that is on one side already keeps its rows together there; one of a folder's test split is not used at all.
    """
    for one in sets:
        if not {"train", SINGLE_SPLIT} & one.splits.keys():
            raise DatasetError(f"{one.name}: a folder to compile on needs train.jsonl; it has {', '.join(one.splits)}")
    train = [row for one in sets if "train" in one.splits for row in one.split("train")]
    val = [row for one in sets if "train" in one.splits for row in one.splits.get("val", ())]
    kept_apart = {row.unit for one in sets for name, rows in one.splits.items() if name in KEPT_APART for row in rows}
    loose = [row for one in sets if "train" not in one.splits for row in one.rows if row.unit not in kept_apart]
    to_choose_on = {row.unit for row in val}
    free = [row for row in loose if row.unit not in to_choose_on]
    val += [row for row in loose if row.unit in to_choose_on]
    to_learn_from = {row.unit for row in train}
    undecided = [row for row in free if row.unit not in to_learn_from]
    train += [row for row in free if row.unit in to_learn_from]
    if len(undecided) < FEW_ROWS:
        return [*train, *undecided], val
    learn, choose = split_rows(undecided, val_share=VAL_SHARE, seed=seed)
    return [*train, *learn], [*val, *choose]


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """DSPy prints and logs as it goes; stdout belongs to the command, and progress is told by `Trials`."""
    log = logging.getLogger("dspy")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        sink = io.StringIO()
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            yield
    finally:
        log.setLevel(level)


def _write_json(path: Path, value: Any) -> None:
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
