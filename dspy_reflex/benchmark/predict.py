"""Put the questions: one contender, all rows, answers in the order of the rows whatever the order of the threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from dspy_reflex.benchmark.baselines.cause import CauseBaseline
from dspy_reflex.benchmark.baselines.rule import RuleBaseline
from dspy_reflex.benchmark.rule_score import RuleScore, score_rule
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.runtime.answer import Answer, Problem, ask
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.calibration import probability
from dspy_reflex.runtime.inputs import rule_inputs
from dspy_reflex.runtime.lm.model import LanguageModel

Kind = Literal["program", "uncompiled", "baseline"]
"""A compiled program, the same one before compiling, or something that needs no model. Also the order of a table."""

Tick = Callable[[], None]
"""Called after each answer."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A program and the model that it runs on."""

    name: str
    """What the table calls it."""
    kind: Kind
    artifact: Artifact
    model: LanguageModel

    @property
    def at_home(self) -> bool:
        """Whether it was compiled for this model; elsewhere neither its threshold nor its calibration holds."""
        return self.artifact.model == self.model.name


@dataclass(frozen=True, slots=True)
class CauseAnswer:
    """One answer to one failure."""

    label: str | None
    """None if there was no usable answer."""
    confidence: float | None
    """In [0, 1], calibrated if the program can; None if there was none, or none that is a probability."""
    problem: Problem = ""
    seconds: float = 0.0
    needs_review: bool = False
    """Whether a person is asked: no usable answer, no threshold, or a confidence below it."""
    tokens: int = 0
    """Input and output together, as the provider counted them; 0 when it did not say."""
    stated: float | None = None
    """The confidence before it was calibrated; None if it was not."""


@dataclass(frozen=True, slots=True)
class RuleProposed:
    """One proposed rule for one failure, scored."""

    component: str
    rule: str
    score: RuleScore
    problem: Problem = ""
    seconds: float = 0.0
    tokens: int = 0
    """Input and output together, as the provider counted them; 0 when it did not say."""


def cause_answers(
    contender: Contender, rows: Sequence[LabelledFailure], concurrency: int, tick: Tick
) -> tuple[CauseAnswer, ...]:
    """Ask a root-cause program about every row.

    Raises:
        ModelUnavailableError: The model could not be reached: an outage is never scored.
    """
    told = map(_cause_answer, _ask(contender, [row.inputs for row in rows], concurrency, tick))
    calibrated = (_calibrated(answer, contender) for answer in told)
    return tuple(replace(answer, needs_review=_unsure(answer, contender)) for answer in calibrated)


def rule_answers(
    contender: Contender, rows: Sequence[LabelledFailure], concurrency: int, tick: Tick
) -> tuple[RuleProposed, ...]:
    """Ask a rule program about every row, with the root cause that people gave it, and score its rules.

    Raises:
        ModelUnavailableError: The model could not be reached: an outage is never scored.
    """
    values = [rule_inputs([row.failure.model_dump()], str(row.root_cause), row.existing_rules) for row in rows]
    answers = _ask(contender, values, concurrency, tick)
    return tuple(_proposed(answer, row) for answer, row in zip(answers, rows, strict=True))


def cause_baseline_answers(
    baseline: CauseBaseline, rows: Sequence[LabelledFailure], tick: Tick
) -> tuple[CauseAnswer, ...]:
    """Ask a fitted baseline about every row."""
    answers: list[CauseAnswer] = []
    for row in rows:
        started = time.perf_counter()
        label, confidence = baseline.predict(row)
        answers.append(CauseAnswer(label, confidence, seconds=time.perf_counter() - started))
        tick()
    return tuple(answers)


def rule_baseline_answers(
    baseline: RuleBaseline, rows: Sequence[LabelledFailure], tick: Tick
) -> tuple[RuleProposed, ...]:
    """Ask a fitted baseline about every row, and score its rules."""
    answers: list[RuleProposed] = []
    for row in rows:
        started = time.perf_counter()
        component, rule = baseline.predict(row)
        seconds = time.perf_counter() - started
        answers.append(RuleProposed(component, rule, score_rule(rule, component, row), seconds=seconds))
        tick()
    return tuple(answers)


def _ask(contender: Contender, values: Sequence[Mapping[str, str]], concurrency: int, tick: Tick) -> list[Answer]:
    def one(value: Mapping[str, str]) -> Answer:
        return ask(contender.artifact, contender.model, value)

    if concurrency <= 1:
        return [_ticked(one(value), tick) for value in values]
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        futures = [pool.submit(one, value) for value in values]
        try:
            return [_ticked(future.result(), tick) for future in futures]
        except BaseException:
            # An outage or Ctrl-C: what was not asked yet is not asked (and not paid for) any more.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ticked(answer: Answer, tick: Tick) -> Answer:
    tick()
    return answer


def _cause_answer(answer: Answer) -> CauseAnswer:
    tokens = answer.input_tokens + answer.output_tokens
    if answer.fields is None:
        return CauseAnswer(None, None, answer.problem, answer.seconds, tokens=tokens)
    confidence = probability(answer.fields.get("confidence"))
    return CauseAnswer(answer.fields["root_cause"], confidence, "", answer.seconds, tokens=tokens)


def _calibrated(answer: CauseAnswer, contender: Contender) -> CauseAnswer:
    """As `CauseProgram` has it."""
    calibration = contender.artifact.calibration if contender.at_home else None
    if calibration is None or answer.confidence is None:
        return answer
    return replace(answer, confidence=calibration.of(answer.confidence), stated=answer.confidence)


def _unsure(answer: CauseAnswer, contender: Contender) -> bool:
    """As `CauseProgram` has it."""
    threshold = contender.artifact.threshold if contender.at_home else None
    return answer.label is None or threshold is None or (answer.confidence or 0.0) < threshold


def _proposed(answer: Answer, row: LabelledFailure) -> RuleProposed:
    fields = answer.fields or {}
    component, rule = str(fields.get("component") or ""), str(fields.get("rule") or "")
    tokens = answer.input_tokens + answer.output_tokens
    return RuleProposed(component, rule, score_rule(rule, component, row), answer.problem, answer.seconds, tokens)
