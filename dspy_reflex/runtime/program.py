"""The typed face of the runtime: records in, records out, and an honest word on what the program is worth."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from dspy_reflex.errors import ProgramError, RefusalError
from dspy_reflex.mechanism.signature import signature_of
from dspy_reflex.mechanism.symptom import load_table, symptom_of
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.proposal import MAX_RULE_CHARS, Proposal
from dspy_reflex.records.taxonomy import NO_SECOND
from dspy_reflex.runtime import library
from dspy_reflex.runtime.answer import Answer, aask, ask, read_answer
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact, read
from dspy_reflex.runtime.calibration import probability
from dspy_reflex.runtime.inputs import cause_inputs, rule_inputs, written_by_others
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.runtime.lm.model import Completion, LanguageModel, Message
from dspy_reflex.runtime.render import render
from dspy_reflex.untrusted import as_text, neutralise, quoted_in

OFFLINE = "offline"
SYMPTOMS_VARIABLE = "REFLEX_SYMPTOMS"
SYMPTOM_CHARS = 2_000
"""How much of a context's end is searched for a symptom: what was seen is what came last."""
FailureLike = Failure | Mapping[str, Any]


@dataclass(frozen=True)
class _Loaded:
    """A program and the model it runs on."""

    artifact: Artifact
    model: LanguageModel

    @property
    def at_home(self) -> bool:
        """Whether the program was compiled for this model."""
        return self.artifact.model == self.model.name

    @property
    def score(self) -> str:
        """What the program is worth on this model."""
        return self.artifact.score if self.at_home else "unmeasured"

    @property
    def warning(self) -> str:
        """What is wrong with running it on this model; empty if nothing."""
        if self.at_home or self.artifact.model == ANY_MODEL:
            return ""
        return (
            f"{self.artifact.name} was compiled for {self.artifact.model}, not for {self.model.name}: its threshold "
            "is dropped and every answer is marked for review"
        )


class CauseProgram(_Loaded):
    """Names root causes. Safe to call from several threads."""

    def __call__(self, failure: FailureLike) -> Diagnosis:
        """Diagnose one failure.

        Raises:
            ModelUnavailableError: The model could not be reached, after retries.
        """
        return self.explained(failure)[0]

    async def acall(self, failure: FailureLike) -> Diagnosis:
        """Diagnose one failure without blocking the event loop."""
        fields = _plain(failure)
        shown = cause_inputs(fields)
        return self._diagnosis(fields, shown, await aask(self.artifact, self.model, shown))

    def explained(self, failure: FailureLike) -> tuple[Diagnosis, Answer]:
        """The diagnosis, and the answer it was read from: its tokens and seconds are what it cost."""
        fields = _plain(failure)
        shown = cause_inputs(fields)
        answer = ask(self.artifact, self.model, shown)
        return self._diagnosis(fields, shown, answer), answer

    def chat(self, failure: FailureLike) -> list[Message]:
        """What the model is asked about a failure, for those who ask it themselves."""
        return render(self.artifact, cause_inputs(_plain(failure)))

    def read(self, failure: FailureLike, completion: Completion) -> tuple[Diagnosis, Answer]:
        """The diagnosis and the answer that a model's reply to `chat` amounts to."""
        fields, answer = _plain(failure), read_answer(self.artifact, completion)
        return self._diagnosis(fields, cause_inputs(fields), answer), answer

    def _diagnosis(self, fields: Mapping[str, Any], shown: Mapping[str, str], answer: Answer) -> Diagnosis:
        told = answer.fields or {}
        cause, confidence = told.get("root_cause"), self._confidence(told)
        reason = self._why_review(answer, confidence)
        second = told.get("second")
        return Diagnosis(
            failure_id=_id(fields),
            root_cause=cause,
            second=None if second in (NO_SECOND, cause) else second,
            confidence=confidence,
            needs_review=bool(reason),
            review_reason=reason,
            reasoning=told.get("reasoning", ""),
            evidence=_evidence(told.get("evidence", ""), shown),
            symptom=symptom_of_failure(fields),
            signature=signature_of(neutralise(as_text(fields.get("actual_outcome")))),
            program=self.artifact.name,
            model=self.model.name,
            score=self.score,
        )

    def _confidence(self, told: Mapping[str, Any]) -> float:
        """The probability of being right, as far as it is known; 0 where the answer does not state how sure it is."""
        stated = probability(told.get("confidence"))
        if stated is None:
            return 0.0
        calibration = self.artifact.calibration if self.at_home else None
        return calibration.of(stated) if calibration else stated

    def _why_review(self, answer: Answer, confidence: float) -> str:
        if answer.problem:
            return f"{answer.problem}: {answer.detail}"
        if not self.at_home:
            return self.warning or "no threshold was measured for this program and model"
        threshold = self.artifact.threshold
        if threshold is None:
            return "the program has no threshold: its training rows could not give one"
        return f"confidence {confidence:.2f} is below the threshold {threshold:.2f}" if confidence < threshold else ""


class RuleProgram(_Loaded):
    """Proposes rules. Safe to call from several threads."""

    def __call__(
        self, failures: FailureLike | Iterable[FailureLike], root_cause: str, existing_rules: Iterable[str] = ()
    ) -> Proposal:
        """Propose one rule for failures that share a root cause.

        Raises:
            RefusalError: The model declined, or gave no usable rule.
            ModelUnavailableError: The model could not be reached, after retries.
        """
        return _or_raise(self.explained(failures, root_cause, existing_rules)[0])

    async def acall(
        self, failures: FailureLike | Iterable[FailureLike], root_cause: str, existing_rules: Iterable[str] = ()
    ) -> Proposal:
        """Propose one rule without blocking the event loop."""
        plain = _plain_list(failures)
        answer = await aask(self.artifact, self.model, self._values(plain, root_cause, existing_rules))
        return _or_raise(self._proposal(plain, root_cause, answer))

    def explained(
        self, failures: FailureLike | Iterable[FailureLike], root_cause: str, existing_rules: Iterable[str] = ()
    ) -> tuple[Proposal | RefusalError, Answer]:
        """The proposal, or why there is none, and the answer it was read from."""
        plain = _plain_list(failures)
        answer = ask(self.artifact, self.model, self._values(plain, root_cause, existing_rules))
        return self._proposal(plain, root_cause, answer), answer

    def _values(self, failures: list[Mapping[str, Any]], cause: str, rules: Iterable[str]) -> dict[str, str]:
        if cause not in self.artifact.labels:
            raise ProgramError(
                f"{self.artifact.name} knows no {cause!r}; its causes are {', '.join(self.artifact.labels)}"
            )
        return rule_inputs(failures, cause, rules)

    def _proposal(self, failures: list[Mapping[str, Any]], root_cause: str, answer: Answer) -> Proposal | RefusalError:
        told = answer.fields
        if told is None or not told["rule"].strip():
            return RefusalError(f"{self.model.name} proposed no rule ({answer.detail or 'empty'}); try another model")
        rule = " ".join(told["rule"].split())
        if len(rule) > MAX_RULE_CHARS:
            return RefusalError(
                f"{self.model.name} proposed a rule of {len(rule)} characters; at most {MAX_RULE_CHARS}"
            )
        ids = tuple(map(_id, failures))
        return Proposal(
            id=_proposal_id(root_cause, told["component"], rule),
            failure_ids=ids,
            root_cause=root_cause,
            component=told["component"],
            rule=rule,
            rationale=told["rationale"],
            program=self.artifact.name,
            model=self.model.name,
            score=self.score,
        )


PROGRAMS: Mapping[str, type[CauseProgram] | type[RuleProgram]] = {"root_cause": CauseProgram, "rule": RuleProgram}


def load_program(
    name: str, *, path: str | Path | None = None, lm: str = OFFLINE, labels: Sequence[str] | None = None
) -> Any:
    """A compiled program, ready to call.

    Args:
        name: `root_cause` (a `CauseProgram`) or `rule` (a `RuleProgram`).
        path: The artefact; by default the current one for the model, from `./programs`, the user's folder, or the
            package, in this order.
        labels: The label set it must have, to go with another program; any by default.
        lm: The model: `offline`, `anthropic/…`, `openai/…`, `ollama_chat/…`, `hosted_vllm/…`.

    Raises:
        ProgramError: There is no such program, or its file is damaged or is another program.
        ModelNotConfiguredError: The model's key or address is missing.
    """
    if name not in PROGRAMS:
        raise ProgramError(f"there is no program {name!r}; choose one of {', '.join(PROGRAMS)}")
    model = connect(lm)
    artifact = read(Path(path)) if path else library.find(name, model.name, labels=labels)
    if artifact.program != name:
        raise ProgramError(f"{path}: this is a {artifact.program} program, not a {name} program")
    return PROGRAMS[name](artifact, model)


def symptom_of_failure(failure: FailureLike) -> str:
    """What was seen, by the outcome and the end of the context; patterns of the user's own come first.

    Raises:
        ConfigError: The file that `REFLEX_SYMPTOMS` names cannot be used.
    """
    fields = _plain(failure)
    own = os.environ.get(SYMPTOMS_VARIABLE)
    table = _table(own) if own else None
    return symptom_of(
        f"{as_text(fields.get('actual_outcome'))}\n{as_text(fields.get('context'))[-SYMPTOM_CHARS:]}", table
    )


_table = cache(load_table)
"""A user's symptoms, read once."""


def _plain(failure: FailureLike) -> Mapping[str, Any]:
    return failure.model_dump() if isinstance(failure, Failure) else failure


def _plain_list(failures: FailureLike | Iterable[FailureLike]) -> list[Mapping[str, Any]]:
    if isinstance(failures, Failure):
        return [failures.model_dump()]
    if isinstance(failures, Mapping):
        return [cast("Mapping[str, Any]", failures)]
    return [_plain(failure) for failure in failures]


def _or_raise(found: Proposal | RefusalError) -> Proposal:
    if isinstance(found, RefusalError):
        raise found
    return found


def _id(fields: Mapping[str, Any]) -> str:
    value = fields.get("id")
    return "" if value is None else neutralise(str(value))


def _evidence(quotes: str, inputs: Mapping[str, str]) -> tuple[str, ...]:
    """Quotes that occur in what the program was shown, word for word."""
    shown = "\n".join(part for text in inputs.values() for part in written_by_others(text))
    lines = (line.strip().strip('"\u201c\u201d').lstrip("-* ").strip() for line in quotes.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and quoted_in(line, shown)))


def _proposal_id(*content: object) -> str:
    return "prop_" + hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16]
