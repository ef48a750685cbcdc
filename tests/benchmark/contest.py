"""Rows, programs and models for the tests of the benchmark: fakes with real behaviour, no mocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dspy_reflex.benchmark.predict import Contender, Kind
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.records.failure import Failure
from dspy_reflex.runtime.artifact import Artifact, seal, taxonomy_digest
from dspy_reflex.runtime.lm.model import PLAIN, Completion, Message, Sampling

LABELS = ("red", "green", "blue")
CAUSE_OUTPUTS = [
    {"name": "root_cause", "type": "choice", "choices": list(LABELS)},
    {"name": "confidence", "type": "float"},
]
RULE_OUTPUTS = [
    {"name": "component", "type": "choice", "choices": ["SOUL", "AGENTS", "TOOLS"]},
    {"name": "rule", "type": "str"},
]


def row(number: int, cause: str | None = "red", **fields: Any) -> LabelledFailure:
    """A labelled failure whose text says its number and its cause."""
    failure = Failure(id=f"f{number}", task=f"task {number}", actual_outcome=f"it was {cause}")
    return LabelledFailure(failure=failure, root_cause=cause, **fields)


def rows(count: int = 12) -> list[LabelledFailure]:
    """Rows of each label in turn."""
    return [row(number, LABELS[number % 3]) for number in range(count)]


def artifact(
    program: str = "root_cause", train: Sequence[str] = (), val: Sequence[str] = (), **fields: Any
) -> Artifact:
    """A small program that the light runtime can run."""
    cause = program == "root_cause"
    names = (
        ("task", "expected_outcome", "actual_outcome", "context")
        if cause
        else ("failures", "root_cause", "existing_rules")
    )
    labels = fields.get("labels", LABELS)
    taxonomy = {"name": "colours", "causes": [{"name": label} for label in labels]}
    content: dict[str, Any] = {
        "program": program, "inputs": [{"name": name, "type": "str"} for name in names],
        "outputs": CAUSE_OUTPUTS if cause else RULE_OUTPUTS, "messages": [], "tail": "Answer.",
        "labels": list(LABELS), "taxonomy": taxonomy, "taxonomy_digest": taxonomy_digest(taxonomy), "model": "fake/1", "threshold": None,
        "demos": [], "optimizer": None, "seed": 0, "data": {"train": list(train), "val": list(val)}, "scores": None,
        "instructions": "", "dspy_version": "", **fields,
    }  # fmt: skip
    return seal(content)


@dataclass
class FakeModel:
    """Answers by a function of the last message."""

    answer: Callable[[str], Completion]
    name: str = "fake/1"
    asked: list[str] = field(default_factory=list[str])

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat."""
        self.asked.append(messages[-1]["content"])
        return self.answer(messages[-1]["content"])

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat without blocking the event loop."""
        return self.complete(messages)


def says(cause: str, confidence: float | str = 0.9) -> Completion:
    """A well-formed answer to a root-cause program."""
    return Completion(f"[[ ## root_cause ## ]]\n{cause}\n\n[[ ## confidence ## ]]\n{confidence}")


def proposes(component: str, rule: str) -> Completion:
    """A well-formed answer to a rule program."""
    return Completion(f"[[ ## component ## ]]\n{component}\n\n[[ ## rule ## ]]\n{rule}")


def knows(prompt: str) -> Completion:
    """Reads the cause out of the text: always right."""
    return says(next(label for label in LABELS if f"it was {label}" in prompt))


def contender(
    answer: Callable[[str], Completion], name: str = "mine", kind: Kind = "program", **fields: Any
) -> Contender:
    """A program on a fake model."""
    return Contender(name, kind, artifact(**fields), FakeModel(answer))


def asked(contender: Contender) -> list[str]:
    """The prompts that a contender's fake model was given."""
    assert isinstance(contender.model, FakeModel)
    return contender.model.asked
