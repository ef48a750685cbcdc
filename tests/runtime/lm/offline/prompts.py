"""Prompts for the offline learner, from demos and definitions that no part of the package has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dspy_reflex.optimize.publish import load_module
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.lm.offline import answer
from dspy_reflex.runtime.lm.offline.cues import mine, write_sheet
from dspy_reflex.runtime.lm.offline.features import features_of
from dspy_reflex.runtime.parse import parse
from dspy_reflex.runtime.render import render
from dspy_reflex.taxonomies.guide import cause_guide
from tests.runtime.programs import BARE, REPORTS, published

Case = tuple[dict[str, str], str]


def case(report: str) -> dict[str, str]:
    """The inputs of one failure."""
    return cause_inputs({"task": "Look after the house.", "actual_outcome": report})


CASES: Sequence[Case] = [(case(text), label) for label, texts in REPORTS.items() for text in texts]
LEARNT = [one for i, one in enumerate(CASES) if i % 6 < 4]
NEW = [one for i, one in enumerate(CASES) if i % 6 >= 4]
"""Four of the six reports of each label are shown, two are asked about."""


def with_demos(cases: Sequence[Case], taxonomy: Taxonomy = BARE) -> Artifact:
    """A program that has only demos to go by."""
    return published(taxonomy=taxonomy, demos=[inputs | {"root_cause": label} for inputs, label in cases])


def sheet_of(cases: Sequence[Case], smallest: float = 0.1) -> str:
    """A cue sheet mined from cases."""
    labels = [label for _, label in cases]
    return write_sheet(mine([features_of(inputs) for inputs, _ in cases], labels, sorted(set(labels)), smallest))


def with_sheet(sheet: str, taxonomy: Taxonomy = BARE) -> Artifact:
    """A program that has only a cue sheet to go by."""
    return published(taxonomy=taxonomy, instructions=f"{cause_guide(taxonomy)}\n\n{sheet}")


def told(program: Artifact, inputs: Mapping[str, str]) -> dict[str, Any]:
    """The answer's fields."""
    return parse(program.data["outputs"], answer(render(program, inputs)))


def labels_told(program: Artifact, cases: Sequence[Case]) -> list[str]:
    """The root causes answered."""
    return [told(program, inputs)["root_cause"] for inputs, _ in cases]


def accuracy(program: Artifact, cases: Sequence[Case]) -> float:
    """Share of right answers."""
    return sum(given == label for given, (_, label) in zip(labels_told(program, cases), cases, strict=True)) / len(
        cases
    )


def as_json(program: Artifact, inputs: Mapping[str, str]) -> list[Message]:
    """The prompt of the same program in DSPy's JSON format."""
    import dspy

    predictor = load_module(program).predict
    return dspy.JSONAdapter().format(predictor.signature, predictor.demos, dict(inputs))


def chat(instructions: str, outputs: str, asked: str) -> list[Message]:
    """A prompt as DSPy lays it out, with as little in it as possible."""
    system = (
        f"Your input fields are:\n1. `x` (str):\nYour output fields are:\n{outputs}\nIn adhering to this structure, "
    )
    return [
        {"role": "system", "content": f"{system}your objective is: {instructions}"},
        {"role": "user", "content": asked},
    ]
