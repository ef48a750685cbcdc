"""From a compiled DSPy module to an artefact, and the proof that the artefact renders what the module would send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import dspy

from dspy_reflex.errors import ProgramError, RenderError
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact, seal
from dspy_reflex.runtime.render import render


def adapter() -> Any:
    """The one adapter that programs are compiled and rendered with: no second try in another format."""
    return dspy.ChatAdapter(use_json_adapter_fallback=False)


def publish(
    module: Any,
    taxonomy: Taxonomy | None = None,
    *,
    program: str | None = None,
    model: str = ANY_MODEL,
    optimizer: Mapping[str, Any] | None = None,
    seed: int = 0,
    trainset: Sequence[Any] = (),
    data: Mapping[str, Any] | None = None,
    scores: Mapping[str, Any] | None = None,
    threshold: float | None = None,
) -> Artifact:
    """Make the artefact of a module with one predictor.

    Args:
        module: A `RootCauseClassifier`, a `RuleProposer`, or any module with one such predictor.
        taxonomy: What it was made for; by default what the module says it is.
        program: `root_cause` or `rule`; by default what the module says it is.
        model: The model that it was compiled for.
        optimizer: Name and options, for the record.
        seed: The compile's seed.
        trainset: The examples it was compiled on (see `examples_for`): demos name their rows, and a benchmark on one
            of them is refused.
        data: Name of the data set, and the row hashes of `train` and `val`; by default those of `trainset`.
        scores: `metric`, `value`, `interval`, `n`, and `on` (what it was measured on); None if nobody measured it.
        threshold: Confidence below which an answer needs review.

    Raises:
        RenderError: A field has a type that the light runtime cannot render.
        ProgramError: The module has more than one predictor.
    """
    taxonomy = taxonomy or _taxonomy_of(module)
    predictor = _only_predictor(module)
    messages, tail = _rendered(predictor)
    return seal(
        {
            "program": program or module.program,
            "inputs": [_field(name, info) for name, info in predictor.signature.input_fields.items()],
            "outputs": [_field(name, info) for name, info in predictor.signature.output_fields.items()],
            "instructions": predictor.signature.instructions,
            "messages": messages,
            "tail": tail,
            "demos": [_demo(demo, predictor.signature, trainset) for demo in predictor.demos],
            "labels": list(taxonomy.labels),
            "taxonomy": taxonomy.model_dump(mode="json"),
            "taxonomy_digest": taxonomy.digest,
            "model": model,
            "optimizer": dict(optimizer or {}),
            "seed": seed,
            "data": dict(data) if data else {"name": "", "train": [row.dspy_row for row in trainset], "val": []},
            "scores": dict(scores) if scores else None,
            "threshold": threshold,
            "dspy_version": dspy.__version__,
        }
    )


def load_module(artifact: Artifact) -> Any:
    """The DSPy module that an artefact was made of, demos and instructions included."""
    taxonomy = Taxonomy.model_validate(artifact.data["taxonomy"])
    module = PROGRAMS[artifact.program](taxonomy)
    module.load_state(artifact.to_dspy())
    return module


def same_rendering(artifact: Artifact, module: Any, values: Mapping[str, str]) -> bool:
    """Whether the light runtime and the installed DSPy send the same bytes for an input."""
    predictor = _only_predictor(module)
    theirs = adapter().format(predictor.signature, predictor.demos, dict(values))
    return render(artifact, values) == theirs


def _taxonomy_of(module: Any) -> Taxonomy:
    return module.taxonomy


def _only_predictor(module: Any) -> Any:
    predictors = module.predictors()
    if len(predictors) != 1:
        raise ProgramError(f"a program is one predictor; this module has {len(predictors)}. Publish each by itself")
    return predictors[0]


def _rendered(predictor: Any) -> tuple[list[dict[str, str]], str]:
    """All messages but the last, and what stands in the last one under the input fields."""
    names = list(predictor.signature.input_fields)
    marks = {name: f"\u241e{name}\u241e" for name in names}
    *messages, last = adapter().format(predictor.signature, predictor.demos, marks)
    head = "\n\n".join(f"[[ ## {name} ## ]]\n{marks[name]}" for name in names) + "\n\n"
    if not last["content"].startswith(head):
        raise RenderError("the installed DSPy renders input fields in a way this version does not know")
    return messages, last["content"].removeprefix(head)


def _field(name: str, info: Any) -> dict[str, Any]:
    kind = info.annotation
    extra = info.json_schema_extra
    field = {"name": name, "desc": extra["desc"], "prefix": extra["prefix"]}
    if kind is str:
        return {**field, "type": "str"}
    if kind is float:
        return {**field, "type": "float"}
    if get_origin(kind) is Literal and all(isinstance(choice, str) for choice in get_args(kind)):
        return {**field, "type": "choice", "choices": list(get_args(kind))}
    raise RenderError(f"the field {name!r} has the type {kind}; programs may use str, float and Literal of strings")


def _demo(demo: Any, signature: Any, trainset: Sequence[Any]) -> dict[str, Any]:
    values = {name: demo[name] for name in signature.fields if name in demo}
    inputs = {name: demo[name] for name in signature.input_fields if name in demo}
    rows = (row for row in trainset if all(row.get(name) == value for name, value in inputs.items()))
    known = demo.get("dspy_id") or next((row.dspy_id for row in rows), None)
    return {"id": known, "bootstrapped": bool(demo.get("augmented")), "values": values}
