"""The work of a compile: optimize, choose, export, measure, calibrate. Everything here is answered by journaled models."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from dspy_reflex.errors import BudgetError, CompileError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.split import folds
from dspy_reflex.optimize import calibrate
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.measure import Measured, beforehand, beside, meanwhile, measure
from dspy_reflex.optimize.metrics import CauseMetric, cause_criterion, guarded, rule_criterion, rule_metric
from dspy_reflex.optimize.models.dspy_lm import ReflexLM, model_name
from dspy_reflex.optimize.models.journal import Journal
from dspy_reflex.optimize.models.journaled import Role, journaled
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.optimizers import optimizer
from dspy_reflex.optimize.optimizers.base import Setting, flag
from dspy_reflex.optimize.options import CompileOptions
from dspy_reflex.optimize.publish import adapter, publish
from dspy_reflex.optimize.rows import Rows
from dspy_reflex.optimize.search.demos import in_turn
from dspy_reflex.optimize.search.scoreboard import Scoreboard
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES
from dspy_reflex.runtime.render import render

FOLDS = 5
VAL = "val (chosen on it)"
"""What scores on the val split are called: the best of several candidates looks better there than it is."""
VIEW_BATCH = 10
"""Examples that a language model is shown at once when it writes instructions; the offline learner reads them all."""
CURVE_SHARES = (0.125, 0.25, 0.5)
"""Parts of the train set for a learning curve; the whole is compiled anyway."""
SAID_CHARS = 300
"""How much of a model's own words is repeated."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """What the work of a run came to."""

    artifact: Artifact
    plain: Artifact
    """The same program before it was compiled."""
    measured: Measured
    before: Measured
    candidates: list[dict[str, Any]]
    calibration: dict[str, Any] | None
    curve: list[dict[str, Any]] | None
    partial: str | None
    warnings: tuple[str, ...]


class Work:
    """The models of a run, and what is done with them."""

    def __init__(self, options: CompileOptions, journal: Journal, ledger: Ledger, say: Say, batches: Path) -> None:
        """Connect the models; `batches` is where what is known of batches is kept."""
        self.options, self.ledger, self.say, self.batches = options, ledger, say, batches
        self.optimizer = optimizer(options.optimizer)
        self.settings = self.optimizer.configured(options.settings)

        def connected(name: str, role: Role) -> Any:
            return journaled(name, role, journal, ledger)

        self.task_lm = ReflexLM(connected(options.lm, "task"))
        self.prompt_lm = ReflexLM(connected(options.prompt_lm or options.lm, "prompt"))
        self.teacher_lm = ReflexLM(connected(options.teacher_lm, "teacher")) if options.teacher_lm else None
        self.model = connected(options.lm, "measure")
        self.board: Scoreboard | None = None

    def status(self) -> str:
        """Where the work is, in one line: phase, candidate, best score, what is spent and what is left."""
        board, ledger = self.board, self.ledger
        parts = [ledger.phase]
        if board and board.candidates:
            best = "" if board.best is None else f", best {board.best:.3f}"
            parts.append(f"candidate {len(board.candidates) - 1}{best}")
        usd = "" if ledger.usd is None else f", {ledger.usd:.2f} USD"
        parts.append(f"{ledger.calls} calls, {ledger.tokens:,} tokens{usd}")
        return " \u00b7 ".join([*parts, *filter(None, [ledger.left()])])

    def made(self, train: Rows, val: Rows, name: str) -> Made:
        """Compile on rows, and measure before and after."""
        self.say(f"{len(train)} rows to learn from, {len(val)} to choose on" if val else f"{len(train)} rows, no val")
        student = PROGRAMS[self.options.program](self.options.taxonomy)
        plain = self._published(student, [])
        with self._measuring(plain, train, val) as measuring:
            module, board, partial = self._optimized(student, train, val or train, measuring.result)
            before = measuring.result()
        compiled = self._published(module, train)
        self._check_changed(plain, compiled, len(val or train))
        measured = self._measure(compiled, val) if val else self._cross_validated(student, train)
        if measured.unusable == len(measured.rows):
            raise CompileError(
                f"{self.options.lm}: none of its {measured.unusable} answers could be used; try another model"
            )
        told, curve = measured, None
        try:
            if val and not partial:
                told, curve = self._further(student, train, val, measured)
        except (BudgetError, Stop) as stopped:
            error = stopped.error if isinstance(stopped, Stop) else stopped
            if not isinstance(error, BudgetError):
                raise
            partial = str(error)
        known, calibration = self._calibrated(told)
        data = {"name": name, "train": [row.row_hash for row in train], "val": [row.row_hash for row in val]}
        final = self._published(module, train, data=data, scores=measured.scores, partial=bool(partial), **known)
        candidates, warnings = board.to_json(module), self._warnings(measured, final)
        return Made(final, plain, measured, before, candidates, calibration, curve, partial, warnings)

    def _further(self, student: Any, train: Rows, val: Rows, measured: Measured) -> tuple[Measured, Any]:
        """What takes further compiles, if it was asked for: answers to calibrate on, and a learning curve."""
        told = self._out_of_fold(student, train, val) if self.options.cross_calibrate else measured
        return told, self._curve(student, train, val, measured) if self.options.learning_curve else None

    def _optimized(
        self, student: Any, train: Rows, val: Rows, ready: Callable[[], object] = lambda: None
    ) -> tuple[Any, Scoreboard, str | None]:
        """The best module, the board it was chosen from, and why the search ended early if it did."""
        setting = self._setting(train, val, ready)
        self.board = board = setting.board
        with _quiet(), dspy.context(lm=self.task_lm, adapter=adapter(), callbacks=[board]):
            try:
                module = self.optimizer.run(student, setting, self.settings)
                return self._best(student, module, board), board, None
            except Stop as stopped:
                if not isinstance(stopped.error, BudgetError) or not board.finished(but=student):
                    raise
                return board.leader(student), board, str(stopped.error)
            except AdapterParseError as error:
                said = " ".join(str(error).split())[:SAID_CHARS]
                raise CompileError(
                    f"{self.options.optimizer} stopped, a model did not answer in the form asked for: {said}; "
                    "try another --prompt-lm or --optimizer"
                ) from None

    def _searched(self, student: Any, train: Rows, val: Rows) -> Any:
        """The best module; one whose search ended early would be told as a fold or a point of a curve like others."""
        module, _, partial = self._optimized(student, train, val)
        if partial:
            raise BudgetError(partial)
        return module

    def _best(self, student: Any, module: Any, board: Scoreboard) -> Any:
        """The optimizer's own choice, or a candidate of its that is better by our criterion."""
        if board.finished(but=student):
            board.score(module)
            return board.leader(student)
        return module

    def _setting(self, train: Rows, val: Rows, ready: Callable[[], object]) -> Setting:
        options = self.options
        cause = options.program == "root_cause"
        metric = guarded(CauseMetric.balanced_on(val, options.costs) if cause else rule_metric)
        criterion = cause_criterion(val, options.costs) if cause else rule_criterion(val)
        valset = examples_for(options.program, val, options.seed)
        ahead = self._ahead if options.batch else None
        return Setting(
            metric=metric,
            trainset=in_turn(examples_for(options.program, train, options.seed)),
            valset=valset,
            task_lm=self.task_lm,
            prompt_lm=self.prompt_lm,
            teacher_lm=self.teacher_lm,
            seed=options.seed,
            threads=options.threads,
            view_batch=len(train) if (options.prompt_lm or options.lm) in OFFLINE_NAMES else VIEW_BATCH,
            board=Scoreboard(valset, metric, criterion, self.ledger, options.threads, self.say, ahead, ready),
        )

    def _check_changed(self, plain: Artifact, compiled: Artifact, rows: int) -> None:
        parts = ("messages", "tail", "retrieval")
        if [plain.data.get(part) for part in parts] == [compiled.data.get(part) for part in parts]:
            further = self.optimizer.looks_further_with
            more = f"more rows, a higher {flag(further)}," if further else "more rows"
            raise CompileError(
                f"{self.options.optimizer} changed nothing: no candidate beat the uncompiled program on {rows} rows. "
                f"Give it {more} or another --optimizer"
            )

    def _cross_validated(self, student: Any, rows: Rows) -> Measured:
        answers: list[Measured] = []
        for train, held_out in folds(rows, FOLDS, self.options.seed):
            self.say(
                f"cross-validating: {len(answers) + 1} of {FOLDS} programs that answer what they did not learn from"
            )
            module = self._searched(student, train, train)
            answers.append(self._measure(self._published(module, train), held_out))
        return Measured.pooled(answers, f"{len(answers)}-fold cross-validation")

    def _calibrated(self, told: Measured) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """What the artefact gets to know about its confidence, and what calibration did."""
        confidences, hits, units = told.sure
        calibration = calibrate.fit(confidences, hits)
        if calibration is None:
            return {"calibration": None, "threshold": None}, None
        threshold = calibrate.threshold_for(calibration, confidences, self.options.target_precision)
        report = {"on": told.on, **calibrate.report(confidences, hits, units)}
        return {"calibration": calibration.to_json(), "threshold": threshold}, report

    def _out_of_fold(self, student: Any, train: Rows, val: Rows) -> Measured:
        """Answers to train rows by programs that did not learn from them; each was chosen on val."""
        parts: list[Measured] = []
        for learnt, held_out in folds(train, FOLDS, self.options.seed):
            self.say(f"calibrating: {len(parts) + 1} of {FOLDS} programs that answer what they did not learn from")
            module = self._searched(student, learnt, val)
            parts.append(self._measure(self._published(module, learnt), held_out))
        return Measured.pooled(parts, f"train, {FOLDS} folds")

    def _curve(self, student: Any, train: Rows, val: Rows, whole: Measured) -> list[dict[str, Any]]:
        points: list[dict[str, Any]] = []
        by_class = _in_turn(train)
        for share in CURVE_SHARES:
            part = by_class[: round(share * len(by_class))]
            module = self._searched(student, part, val)
            points.append({"rows": len(part), **self._measure(self._published(module, part), val).scores})
        return [*points, {"rows": len(train), **whole.scores}]

    def _warnings(self, measured: Measured, artifact: Artifact) -> tuple[str, ...]:
        told: list[str] = []
        if measured.unusable:
            told.append(f"{measured.unusable} of {len(measured.rows)} answers could not be used; they are misses")
        demos = artifact.data["demos"]
        taught = "teacher" if self.teacher_lm else "model"
        if getattr(self.settings, "max_bootstrapped", 0) and demos and not any(demo["bootstrapped"] for demo in demos):
            told.append(f"no demo with a worked answer: the {taught} got none right, or plain rows did better")
        return tuple(told)

    def _ahead(self, module: Any, examples: Sequence[Any]) -> None:
        """Ask in one batch what is about to be asked row by row."""
        artifact = self._published(module, [])
        self.model.prefill([render(artifact, dict(one.inputs())) for one in examples], self.batches, self.say)

    def _measuring(self, plain: Artifact, train: Rows, val: Rows) -> AbstractContextManager[Future[Measured]]:
        """Measure the uncompiled program: beside the search, unless both would ask the same, or in batches."""
        if self.options.batch or not val:
            return beforehand(lambda: self._measure(plain, val or train, VAL if val else "train, unseen by it"))
        threads = beside(self.options.threads)
        return meanwhile(lambda: self._measure(plain, val, VAL, threads), self.ledger)

    def _measure(self, artifact: Artifact, rows: Rows, on: str = VAL, threads: int | None = None) -> Measured:
        if self.options.batch:
            inputs = [dict(one.inputs()) for one in examples_for(self.options.program, rows, self.options.seed)]
            self.model.prefill([render(artifact, one) for one in inputs], self.batches, self.say)
        return measure(artifact, self.model, rows, on, threads or self.options.threads)

    def _published(self, module: Any, train: Rows, **known: Any) -> Artifact:
        options = self.options
        return publish(
            module,
            options.taxonomy,
            model=model_name(options.lm),
            optimizer={
                "name": options.optimizer,
                **asdict(self.settings),
                "prompt_lm": model_name(options.prompt_lm or options.lm),
                "teacher_lm": model_name(options.teacher_lm or options.lm),
                **({"costs": [list(cost) for cost in options.costs]} if options.costs else {}),
            },
            seed=options.seed,
            trainset=examples_for(options.program, train, options.seed) if train else [],
            **known,
        )


def _in_turn(rows: Rows) -> list[LabelledFailure]:
    """Rows with classes in turn, so that every beginning of the list has some of each."""
    classes: dict[str | None, list[LabelledFailure]] = {}
    for row in rows:
        classes.setdefault(row.root_cause, []).append(row)
    return [row for several in zip_longest(*classes.values()) for row in several if row is not None]


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """DSPy prints and logs as it goes; stdout belongs to the command, and progress is told by the scoreboard."""
    log = logging.getLogger("dspy")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        sink = io.StringIO()
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            yield
    finally:
        log.setLevel(level)
