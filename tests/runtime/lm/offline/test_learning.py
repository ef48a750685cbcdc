"""The offline learner learns through the prompt and through nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.records.taxonomy import RootCause, Taxonomy
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.lm.offline import answer
from tests.runtime.lm.offline.prompts import (
    CASES,
    LEARNT,
    NEW,
    Case,
    accuracy,
    as_json,
    labels_told,
    sheet_of,
    told,
    with_demos,
    with_sheet,
)
from tests.runtime.programs import BARE, HOUSE, published

CHANCE = 1 / len(HOUSE.labels)
FAILURES = Path(__file__).parents[4] / "datasets" / "failures"
SIX: tuple[str, ...] = (
    "tool_failure",
    "instruction_ambiguity",
    "context_loss",
    "knowledge_gap",
    "overconfidence",
    "reasoning_error",
)
NAMELESS = Taxonomy(name="nameless", causes=tuple(RootCause(name=name, definition="One of them.") for name in SIX))
renamings = st.permutations(HOUSE.labels).map(lambda names: dict(zip(HOUSE.labels, names, strict=True)))


def real(split: str, every: int) -> list[Case]:
    """Real rows, evenly thinned out."""
    rows = [json.loads(line) for line in (FAILURES / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(cause_inputs(row), row["root_cause"]) for row in rows[::every]]


def renamed(cases: list[Case], names: Mapping[str, str]) -> list[Case]:
    """The same cases under other labels."""
    return [(inputs, names[label]) for inputs, label in cases]


def test_a_prompt_that_teaches_nothing_gives_one_answer_to_everything() -> None:
    """So whatever is right below was learnt from the prompt."""
    assert len(set(labels_told(published(taxonomy=BARE), CASES))) == 1


def test_demos_teach_labels_that_it_never_saw() -> None:
    assert accuracy(with_demos(LEARNT), NEW) >= 3 * CHANCE


def test_definitions_teach_labels_that_it_never_saw() -> None:
    assert accuracy(published(taxonomy=HOUSE), CASES) >= 3 * CHANCE


def test_a_cue_sheet_teaches_labels_that_it_never_saw() -> None:
    assert accuracy(with_sheet(sheet_of(LEARNT)), NEW) >= 3 * CHANCE


@settings(max_examples=24)
@given(renamings)
def test_permuting_the_labels_of_the_demos_permutes_the_answers(names: dict[str, str]) -> None:
    answers = labels_told(with_demos(LEARNT), NEW)
    assert labels_told(with_demos(renamed(LEARNT, names)), NEW) == [names[label] for label in answers]


@settings(max_examples=24)
@given(renamings)
def test_permuting_the_labels_of_a_cue_sheet_permutes_the_answers(names: dict[str, str]) -> None:
    sheet = sheet_of(LEARNT)
    other = re.sub(r"(?m)^- (\w+) \[", lambda found: f"- {names[found[1]]} [", sheet)
    answers = labels_told(with_sheet(sheet), NEW)
    assert labels_told(with_sheet(other), NEW) == [names[label] for label in answers]


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_permuting_the_definitions_permutes_the_answers(shift: int) -> None:
    names = dict(zip(HOUSE.labels, [*HOUSE.labels[shift:], *HOUSE.labels[:shift]], strict=True))
    moved = tuple(cause.model_copy(update={"name": names[cause.name]}) for cause in HOUSE.causes)
    answers = labels_told(published(taxonomy=HOUSE), CASES)
    other = labels_told(published(taxonomy=Taxonomy(name="moved", causes=moved, guide=HOUSE.guide)), CASES)
    assert other == [names[label] for label in answers]


def test_it_learns_the_six_causes_from_demos_alone_under_any_names() -> None:
    """Our own labels mean nothing to it: with the labels of the demos rotated, so are the answers."""
    train, test = real("train", 1), real("test", 3)
    names: dict[str, str] = dict(zip(SIX, [*SIX[1:], SIX[0]], strict=True))
    program = with_demos(train, NAMELESS)
    answers = labels_told(program, test)
    assert accuracy(program, test) > 2 / 6
    assert labels_told(with_demos(renamed(train, names), NAMELESS), test) == [names[label] for label in answers]


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_the_order_in_which_labels_are_listed_decides_nothing(order: tuple[int, ...]) -> None:
    other = Taxonomy(name="other", causes=tuple(BARE.causes[i] for i in order))
    assert labels_told(with_demos(LEARNT, other), NEW) == labels_told(with_demos(LEARNT), NEW)


def test_the_whole_distribution_is_permuted_not_just_its_top() -> None:
    names = dict(zip(HOUSE.labels, reversed(HOUSE.labels), strict=True))
    for inputs, _ in NEW:
        one, other = told(with_demos(LEARNT), inputs), told(with_demos(renamed(LEARNT, names)), inputs)
        assert (names[one["root_cause"]], names[one["second"]]) == (other["root_cause"], other["second"])
        assert one["confidence"] == pytest.approx(other["confidence"], abs=0.0011)


@pytest.mark.parametrize("name", ["tool:timeout", "late: never", "a/b", "step 1.2", "A-1", "x_y"])
def test_definitions_are_read_whatever_the_labels_name(name: str) -> None:
    """Any name that a taxonomy may give to a label."""
    causes = (HOUSE.causes[0].model_copy(update={"name": name}), *HOUSE.causes[1:])
    program = published(taxonomy=Taxonomy(name="odd", causes=causes))
    assert labels_told(program, CASES[:4]) == [name] * 4


@pytest.mark.parametrize("program", [published(), with_demos(LEARNT), with_sheet(sheet_of(LEARNT))])
def test_the_json_format_gets_the_same_answer(program: object) -> None:
    """DSPy's other adapter asks for an object; what is decided does not depend on that."""
    import dspy

    from dspy_reflex.optimize.publish import load_module
    from dspy_reflex.runtime.artifact import Artifact

    assert isinstance(program, Artifact)
    signature = load_module(program).predict.signature
    for inputs, _ in CASES:
        said = answer(as_json(program, inputs))
        assert dspy.JSONAdapter().parse(signature, said) == told(program, inputs)
