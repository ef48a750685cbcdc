"""MIPROv2 as DSPy has it and as this package has it: same rows, sizes, threads and model, watched in the same way.

What both share: the program, the chat format, all labelled rows shown to the proposer at once (the offline learner needs
many to see anything; at DSPy's default of 10 both learn nothing), and candidates scored by balanced accuracy on val.
What they do not share is all that is to be measured, and that stock DSPy has its own cache on, new for each compile.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")

import dspy
from dspy.teleprompt import MIPROv2
from dspy.utils.callback import BaseCallback

from benchmarks.model_server import Counts, ModelServer
from dspy_reflex.benchmark.statistics import macro_f1
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.measure import beside, meanwhile, measure
from dspy_reflex.optimize.metrics import CauseMetric, cause_criterion
from dspy_reflex.optimize.models.dspy_lm import ReflexLM
from dspy_reflex.optimize.models.journal import FILE, Journal
from dspy_reflex.optimize.models.journaled import journaled
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.optimizers import optimizer
from dspy_reflex.optimize.optimizers.base import ANY_NUMBER, Setting
from dspy_reflex.optimize.publish import adapter, publish
from dspy_reflex.optimize.search.demos import in_turn
from dspy_reflex.optimize.search.scoreboard import Scoreboard
from dspy_reflex.taxonomies.load import load_taxonomy

ROOT = Path(__file__).parents[1]
DATA = ROOT / "datasets" / "failures"
MODEL = "openai/gpt-4o-mini"
"""A name that both sides speak chat completions with, and send temperatures and seeds to."""
KEY = "sk-none"
SIZES = {"max_demos": 16, "max_bootstrapped": 4, "candidates": 6, "trials": 12}
"""Of both searches, in the words of this package: its defaults."""

Rows = Sequence[LabelledFailure]
Seconds = Callable[[], float]


@dataclass(frozen=True)
class Task:
    """What is compiled on, and how."""

    train: Rows
    val: Rows
    seed: int = 0
    threads: int = 1

    @property
    def gold(self) -> dict[str, str]:
        """The root causes of val, by row hash."""
        return {row.row_hash: str(row.root_cause) for row in self.val}


@dataclass(frozen=True)
class Scored:
    """A program whose answers to all rows of val are known, and what had been spent by then."""

    program: Any
    score: float
    """Balanced accuracy on val: what both searches maximise row by row."""
    macro_f1: float
    spent: Counts
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """A compile that has ended."""

    program: Any
    final: Scored
    """Its score."""
    scored: Sequence[Scored]
    """Everything that was scored on all of val, in order."""
    spent: Counts
    seconds: float
    phases: dict[str, float]
    """Seconds that a phase took; measuring has only those in which nothing else was going on."""


@dataclass
class Watch(BaseCallback):
    """What evaluations came to and when, heard through DSPy's callbacks: the same ear for both sides."""

    gold: dict[str, str]
    spent: Callable[[], Counts]
    started: float = field(default_factory=time.monotonic)
    scored: dict[str, Scored] = field(default_factory=dict[str, Scored])
    spans: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    _open: dict[str, tuple[float, Any]] = field(default_factory=dict[str, tuple[float, Any]])
    _told: dict[str, dict[str, tuple[str | None, float]]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def seconds(self) -> float:
        """Since it began to listen."""
        return time.monotonic() - self.started

    @contextlib.contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Whatever happens inside is of a phase."""
        began = self.seconds
        yield
        self.spans[name].append((began, self.seconds))

    def on_compile_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called by DSPy before an optimizer works."""
        self._open[call_id] = (self.seconds, instance)

    def on_compile_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Called by DSPy after it: the few-shot optimizers are those that MIPROv2 has its demos from."""
        began, instance = self._open.pop(call_id)
        if not isinstance(instance, MIPROv2):
            self.spans["bootstrap"].append((began, self.seconds))

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called by DSPy before an evaluation."""
        self._open[call_id] = (self.seconds, inputs["program"])

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Called by DSPy after it."""
        began, program = self._open.pop(call_id)
        self.spans["evaluate"].append((began, self.seconds))
        name = _content(program)
        told = self._told[name]
        for example, prediction, points in outputs.results if outputs else ():
            told[example.dspy_row] = (getattr(prediction, "root_cause", None), float(points))
        if told.keys() == self.gold.keys() and name not in self.scored:
            self.scored[name] = self._score(program.deepcopy(), told)

    def score_of(self, program: Any) -> Scored:
        """The score of a program that was evaluated on all of val."""
        return self.scored[_content(program)]

    def outcome(self, program: Any) -> Outcome:
        """What came of it all."""
        seconds = self.seconds
        phases = {name: _covered(spans) for name, spans in self.spans.items()}
        everything = _covered([span for spans in self.spans.values() for span in spans])
        others = _covered([span for name, spans in self.spans.items() if name != "measure" for span in spans])
        phases |= {"measure": everything - others, "propose": seconds - everything}
        return Outcome(program, self.score_of(program), tuple(self.scored.values()), self.spent(), seconds, phases)

    def _score(self, program: Any, told: dict[str, tuple[str | None, float]]) -> Scored:
        score = sum(points for _, points in told.values()) / len(told)
        f1 = macro_f1([self.gold[row] for row in told], [label for label, _ in told.values()])
        return Scored(program, score, f1, self.spent(), self.seconds)


def rows_of(*splits: str) -> tuple[Rows, ...]:
    """Splits of our labelled failures."""
    evalset = load_evalset(DATA, load_taxonomy())
    return tuple(evalset.split(name) for name in splits)


def stock(task: Task, server: ModelServer, side: str, latency_s: float = 0.0) -> Outcome:
    """Compile as DSPy does."""
    train, val = (examples_for("root_cause", rows, task.seed) for rows in (task.train, task.val))
    with tempfile.TemporaryDirectory() as cache, _quiet():
        dspy.configure_cache(disk_cache_dir=cache)
        lm = dspy.LM(MODEL, api_base=server.url(side, latency_s), api_key=KEY)
        watch = Watch(task.gold, lambda: server.counts(side))
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False), callbacks=[watch]):
            search = MIPROv2(
                metric=CauseMetric.balanced_on(task.val),
                auto=None,
                num_candidates=SIZES["candidates"],
                max_bootstrapped_demos=SIZES["max_bootstrapped"],
                max_labeled_demos=SIZES["max_demos"],
                num_threads=task.threads,
                max_errors=ANY_NUMBER,
                seed=task.seed,
            )
            found = search.compile(
                RootCauseClassifier(),
                trainset=train,
                valset=val,
                num_trials=SIZES["trials"],
                view_data_batch_size=len(train),
            )
        return watch.outcome(found)


def ours(task: Task, server: ModelServer, side: str, latency_s: float = 0.0) -> Outcome:
    """Compile as `dspy-reflex compile` does, with the measuring before and after that belongs to it."""
    with tempfile.TemporaryDirectory() as run, closing(Journal(Path(run) / FILE)) as journal, _quiet():
        ledger, watch = Ledger(at_once=task.threads), Watch(task.gold, lambda: server.counts(side))
        with _led_to(server.url(side, latency_s)):
            models = {role: journaled(MODEL, role, journal, ledger) for role in ("task", "prompt", "measure")}
        student = RootCauseClassifier()

        def measured(program: Any, threads: int) -> None:
            with watch.phase("measure"):
                measure(publish(program), models["measure"], task.val, "val", threads)

        with meanwhile(lambda: measured(student, beside(task.threads)), ledger) as before:
            setting = _setting(task, ReflexLM(models["task"]), ReflexLM(models["prompt"]), ledger, before.result)
            with dspy.context(lm=setting.task_lm, adapter=adapter(), callbacks=[setting.board, watch]):
                one = optimizer("miprov2")
                setting.board.score(one.run(student, setting, one.configured(SIZES)))
        found = setting.board.leader(student)
        measured(found, task.threads)
        return watch.outcome(found)


def _setting(task: Task, task_lm: Any, prompt_lm: Any, ledger: Ledger, ready: Callable[[], object]) -> Setting:
    train, val = (examples_for("root_cause", rows, task.seed) for rows in (task.train, task.val))
    metric = CauseMetric.balanced_on(task.val)
    return Setting(
        metric=metric,
        trainset=in_turn(train),
        valset=val,
        task_lm=task_lm,
        prompt_lm=prompt_lm,
        teacher_lm=None,
        seed=task.seed,
        threads=task.threads,
        view_batch=len(train),
        board=Scoreboard(val, metric, cause_criterion(task.val), ledger, task.threads, ready=ready),
    )


@contextlib.contextmanager
def _led_to(url: str) -> Generator[None]:
    """Models that are connected inside are reached there."""
    before = {name: os.environ.get(name) for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """DSPy prints and logs as it goes."""
    log, sink = logging.getLogger("dspy"), io.StringIO()
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            yield
    finally:
        log.setLevel(level)


def _content(program: Any) -> str:
    """What tells a program from others: its instructions and demos."""
    demos = [[sorted(demo.toDict().items()) for demo in each.demos] for each in program.predictors()]
    told = repr([[each.signature.instructions for each in program.predictors()], demos])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds that lie in at least one span."""
    total, reached = 0.0, 0.0
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
