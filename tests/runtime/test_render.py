"""Rendering: what the light runtime sends is what DSPy would send, to the byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import dspy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import RenderError
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.publish import adapter
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import cause_inputs, rule_inputs
from dspy_reflex.runtime.render import render
from dspy_reflex.taxonomies.load import load_taxonomy, presets
from tests.runtime.programs import HOUSE, PIECES, any_text, published, raw_failures

Modules = Mapping[str, tuple[Artifact, Any]]
MEGABYTE = 1_000_000


@pytest.fixture(scope="session")
def loaded(compiled: Mapping[str, Artifact]) -> Modules:
    """Every program beside the DSPy module that its state makes."""

    def load(artifact: Artifact) -> Any:
        module = PROGRAMS[artifact.program](Taxonomy.model_validate(artifact.data["taxonomy"]))
        module.load_state(json.loads(json.dumps(artifact.to_dspy())))
        return module

    return {name: (artifact, load(artifact)) for name, artifact in compiled.items()}


def by_dspy(module: Any, values: Mapping[str, str]) -> list[dict[str, Any]]:
    """The messages that the installed DSPy sends for these inputs."""
    predictor = module.predict
    return adapter().format(predictor.signature, predictor.demos, dict(values))


def inputs_for(artifact: Artifact, failure: Mapping[str, Any], rules: list[str]) -> dict[str, str]:
    """What a failure becomes for this program."""
    if artifact.program == "root_cause":
        return cause_inputs(failure)
    return rule_inputs([failure, failure], artifact.labels[0], rules)


@settings(max_examples=1000, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(raw_failures, st.lists(any_text, max_size=3))
def test_every_program_renders_as_dspy_does(loaded: Modules, failure: dict[str, Any], rules: list[str]) -> None:
    """Field headers, custom type markers, any Unicode and lone surrogates, through the inputs that production makes."""
    for artifact, module in loaded.values():
        values = inputs_for(artifact, failure, rules)
        assert render(artifact, values) == by_dspy(module, values)


def test_a_megabyte_of_trouble_renders_as_dspy_does(loaded: Modules) -> None:
    piece = "".join(PIECES)
    failure = {"task": piece * (MEGABYTE // len(piece)), "actual_outcome": "a"}
    for artifact, module in loaded.values():
        values = inputs_for(artifact, failure, [])
        assert render(artifact, values) == by_dspy(module, values)


def test_a_megabyte_that_was_not_clipped_renders_as_dspy_does(loaded: Modules) -> None:
    """The renderer itself has no limit."""
    for artifact, module in loaded.values():
        values = dict.fromkeys(artifact.inputs, "\U0001f600\n\u00fc " * (MEGABYTE // 4))
        assert render(artifact, values) == by_dspy(module, values)


@pytest.mark.parametrize("program", ["root_cause", "rule"])
@pytest.mark.parametrize("name", [*presets(), "house"])
def test_every_taxonomy_renders_as_dspy_does(name: str, program: str) -> None:
    taxonomy = HOUSE if name == "house" else load_taxonomy(name)
    artifact = published(program, taxonomy)
    values = inputs_for(artifact, {"task": "t", "actual_outcome": "a"}, [])
    assert render(artifact, values) == by_dspy(PROGRAMS[program](taxonomy), values)


def test_demos_of_every_kind_render_as_dspy_does() -> None:
    """Bootstrapped ones, labelled ones without reasoning, and one whose text looks like the prompt's own."""
    inputs = cause_inputs({"task": "[[ ## task ## ]]", "actual_outcome": "\u241etask\u241e"})
    whole = {"reasoning": "r", "evidence": "e", "root_cause": "leak", "second": "none", "confidence": 0.5}
    demos = [inputs | {"root_cause": "leak"}, inputs | whole | {"augmented": True}]
    artifact = published(demos=demos)
    module = PROGRAMS["root_cause"](HOUSE)
    module.predict.demos = [dspy.Example(**demo) for demo in demos]
    assert render(artifact, inputs) == by_dspy(module, inputs)


@pytest.mark.parametrize("values", [{}, {"task": "t"}, {"task": None}, {"task": 3}])
def test_a_missing_field_is_refused_by_name(cause: Artifact, values: dict[str, Any]) -> None:
    name = "task" if not isinstance(values.get("task"), str) else "expected_outcome"
    with pytest.raises(RenderError, match=f"{cause.name}: the input field '{name}' is missing or not text"):
        render(cause, values)


def test_fields_of_no_program_are_not_rendered(cause: Artifact) -> None:
    values = cause_inputs({"task": "t", "actual_outcome": "a"})
    assert render(cause, values | {"root_cause": "SECRET"}) == render(cause, values)


def test_rendering_leaves_the_artefact_as_it_was(cause: Artifact) -> None:
    """The messages are shared; a caller that changes its list must not change the next prompt."""
    values = cause_inputs({"task": "t", "actual_outcome": "a"})
    first = render(cause, values)
    before = json.dumps(first)
    first.pop()
    first.append({"role": "user", "content": "mine"})
    assert json.dumps(render(cause, values)) == before
