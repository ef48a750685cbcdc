"""From a module to an artefact and back, also with optimizers of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex import RootCauseClassifier, RuleProposer, load_program, publish
from dspy_reflex.errors import ProgramError, RenderError
from dspy_reflex.optimize.compile import CompileResult
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import CauseMetric, rule_metric
from dspy_reflex.optimize.models.dspy_lm import OfflineLM
from dspy_reflex.optimize.publish import adapter, load_module, same_rendering
from dspy_reflex.runtime.artifact import Artifact, dumps
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import labelled

dspy: Any = pytest.importorskip("dspy")

SIX = load_taxonomy()


def asked(module: Any, values: dict[str, str]) -> Any:
    """What a DSPy module answers, as a script of a user's would ask it."""
    with dspy.context(lm=OfflineLM(), adapter=adapter()):
        return module(**values)


def written(folder: Path, artifact: Artifact) -> Path:
    """An artefact's file."""
    path = folder / f"{artifact.version}.json"
    path.write_text(dumps(artifact), encoding="utf-8")
    return path


def test_a_classifier_compiled_by_ones_own_script_answers_the_same_without_dspy(small: Path, tmp_path: Path) -> None:
    """BootstrapFewShot from DSPy with our metric, then `publish`, then `load_program`: same cause, same confidence."""
    rows, unseen = labelled(small, "train"), labelled(small, "test")
    trainset = examples_for("root_cause", rows, 0)
    with dspy.context(lm=OfflineLM(), adapter=adapter()):
        optimizer = dspy.BootstrapFewShot(metric=CauseMetric(), max_bootstrapped_demos=4, max_labeled_demos=8)
        module = optimizer.compile(RootCauseClassifier(), trainset=trainset)
    artifact = publish(module, SIX, model="offline/1", trainset=trainset)
    assert artifact.data["demos"]
    assert {demo["id"] for demo in artifact.data["demos"]} <= {row.id for row in rows}
    program = load_program("root_cause", path=written(tmp_path, artifact))
    for row in unseen:
        theirs, ours = asked(module, row.inputs), program(row.failure)
        assert (ours.root_cause, ours.reasoning) == (theirs.root_cause, theirs.reasoning)
        assert ours.confidence == pytest.approx(theirs.confidence)
        assert (ours.score, ours.needs_review) == ("unmeasured", True)


def test_a_proposer_compiled_by_ones_own_script_answers_the_same_without_dspy(small: Path, tmp_path: Path) -> None:
    """The same for rules."""
    rows = labelled(small, "train")
    trainset = examples_for("rule", rows, 0)
    with dspy.context(lm=OfflineLM(), adapter=adapter()):
        optimizer = dspy.BootstrapFewShot(metric=rule_metric, max_bootstrapped_demos=3, max_labeled_demos=6)
        module = optimizer.compile(RuleProposer(), trainset=trainset)
    program = load_program("rule", path=written(tmp_path, publish(module, SIX, model="offline/1", trainset=trainset)))
    for row, example in zip(labelled(small, "test"), examples_for("rule", labelled(small, "test"), 0), strict=True):
        del row
        theirs = asked(module, dict(example.inputs()))
        failure = example.dspy_labelled.failure
        ours = program(failure, example.root_cause, example.dspy_labelled.existing_rules)
        assert (ours.component, ours.rule) == (theirs.component, " ".join(theirs.rule.split()))


def test_both_programs_are_parts_of_larger_ones(small: Path) -> None:
    """They are ordinary modules: another module calls them, and an optimizer sees their predictors."""

    class Both(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cause, self.rule = RootCauseClassifier(), RuleProposer()

        def forward(self, **inputs: str) -> Any:
            cause = self.cause(**inputs).root_cause
            return self.rule(failures=inputs["task"], root_cause=cause, existing_rules="not stated")

    both = Both()
    assert [name for name, _ in both.named_predictors()] == ["cause.predict", "rule.predict"]
    assert asked(both, labelled(small, "test")[0].inputs).rule
    with pytest.raises(ProgramError, match="this module has 2"):
        publish(both, SIX, program="rule")


def test_a_module_that_was_never_compiled_belongs_to_no_model(small: Path) -> None:
    """It is the guide alone: no demos, no score, no threshold."""
    artifact = publish(RootCauseClassifier(), SIX)
    assert (artifact.model, artifact.score, artifact.threshold, artifact.data["demos"]) == (
        "any",
        "unmeasured",
        None,
        [],
    )


def test_the_same_module_gives_the_same_version_and_another_label_set_another_one() -> None:
    """The version is the content."""
    trail = load_taxonomy("trail")
    assert publish(RootCauseClassifier(), SIX).version == publish(RootCauseClassifier(SIX), SIX).version
    assert publish(RootCauseClassifier(trail), trail).version != publish(RootCauseClassifier(), SIX).version


def test_a_module_made_for_another_label_set_is_refused() -> None:
    """Its prompt would offer labels that the artefact does not know."""
    with pytest.raises(ProgramError, match="labels are not the taxonomy's"):
        publish(RootCauseClassifier(load_taxonomy("trail")), SIX)


def test_a_field_that_the_light_runtime_cannot_render_is_refused() -> None:
    """Rather than rendered almost as DSPy does."""
    module = dspy.Predict("task: str -> steps: list[str]")
    with pytest.raises(RenderError, match=r"'steps'.*str, float and Literal"):
        publish(module, SIX, program="root_cause")


def test_the_way_back_to_dspy_loses_nothing(compiled: CompileResult, small: Path) -> None:
    """Demos and instructions are there again, and the module renders the same bytes."""
    module = load_module(compiled.artifact)
    assert len(module.predict.demos) == len(compiled.artifact.data["demos"])
    assert module.predict.signature.instructions == compiled.artifact.data["instructions"]
    assert all(same_rendering(compiled.artifact, module, row.inputs) for row in labelled(small, "test"))


def test_a_rendering_that_differs_is_noticed(compiled: CompileResult, small: Path) -> None:
    """One demo less is enough."""
    module = load_module(compiled.artifact)
    module.predict.demos = module.predict.demos[1:]
    assert not same_rendering(compiled.artifact, module, labelled(small, "test")[0].inputs)


def test_the_state_goes_through_a_file_of_dspy(compiled: CompileResult, small: Path, tmp_path: Path) -> None:
    """What `Module.save` writes of the module that we give back, `Module.load` reads, and the answers are the same."""
    path = tmp_path / "state.json"
    load_module(compiled.artifact).save(str(path))
    module = RootCauseClassifier()
    module.load(str(path))
    program = load_program("root_cause", path=compiled.path)
    for row in labelled(small, "test")[:6]:
        assert asked(module, row.inputs).root_cause == program(row.failure).root_cause
    theirs, ours = json.loads(path.read_text())["predict"], compiled.artifact.to_dspy()["predict"]
    assert theirs["signature"] == ours["signature"]
