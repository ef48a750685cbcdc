"""From a compiled DSPy module to an artefact, and the proof that the artefact renders what the module would send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import dspy

from dspy_reflex.errors import ProgramError, RenderError
from dspy_reflex.optimize.models.chat import Chat
from dspy_reflex.optimize.modules import PROGRAMS, only_predictor
from dspy_reflex.optimize.search.knn import NearestDemos, compile_knn
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact, seal
from dspy_reflex.runtime.render import examples, render
from dspy_reflex.runtime.retrieve import VECTORIZER, Retrieval, written


def adapter() -> Any:
    """The one adapter that programs are compiled and rendered with: no second try in another format."""
    return Chat(use_json_adapter_fallback=False)


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
    calibration: Mapping[str, Any] | None = None,
    partial: bool = False,
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
        threshold: Confidence below which an answer needs review; calibrated confidence, if there is a calibration.
        calibration: What its confidence is worth (see `runtime.calibration`).
        partial: Whether the search for it was ended early.

    Raises:
        RenderError: A field has a type that the light runtime cannot render, or an example cannot be shown.
        ProgramError: The module has more than one predictor, or does what no artefact can hold.
    """
    taxonomy = taxonomy or _taxonomy_of(module)
    predictor = _holdable(module)
    messages, tail = _rendered(predictor)
    return seal(
        {
            "program": program or module.program,
            **_asked(predictor.signature),
            "messages": messages,
            "tail": tail,
            "demos": [_demo(demo, predictor.signature, trainset) for demo in predictor.demos],
            "retrieval": _retrieval(module, trainset) if isinstance(module, NearestDemos) else None,
            **_labels(taxonomy),
            "model": model,
            "optimizer": dict(optimizer or {}),
            "seed": seed,
            "data": dict(data) if data else {"name": "", "train": [row.dspy_row for row in trainset], "val": []},
            "scores": dict(scores) if scores else None,
            "threshold": threshold,
            "calibration": dict(calibration) if calibration else None,
            "partial": partial,
            "dspy_version": dspy.__version__,
        }
    )


def load_module(artifact: Artifact) -> Any:
    """The DSPy module that an artefact was made of, demos and instructions included.

    One that retrieves weighs its examples anew, so that `same_rendering` also holds the artefact's index against them.
    """
    taxonomy = Taxonomy.model_validate(artifact.data["taxonomy"])
    module = PROGRAMS[artifact.program](taxonomy)
    module.load_state(Artifact({**artifact.data, "retrieval": None}).to_dspy())
    if not artifact.retrieval:
        return module
    shown = [dspy.Example(**one["values"], dspy_id=one["id"]) for one in artifact.data["retrieval"]["examples"]]
    return compile_knn(module, [one.with_inputs(*artifact.inputs) for one in shown], artifact.retrieval.k)


def same_rendering(artifact: Artifact, module: Any, values: Mapping[str, str]) -> bool:
    """Whether the light runtime and the installed DSPy send the same bytes for an input."""
    predictor = only_predictor(module)
    demos = module.demos_for(values) if isinstance(module, NearestDemos) else predictor.demos
    theirs = adapter().format(predictor.signature, demos, dict(values))
    return render(artifact, values) == theirs


def _taxonomy_of(module: Any) -> Taxonomy:
    return module.taxonomy


def _holdable(module: Any) -> Any:
    """The one predictor of a module that does nothing an artefact cannot hold."""
    if "forward" in vars(module):
        raise ProgramError(
            "this module's forward was replaced, as dspy.KNNFewShot does, and no artefact can hold what it does now; "
            "compile it with dspy_reflex.optimize.search.knn.compile_knn"
        )
    if isinstance(module, NearestDemos) and module.predict.demos:
        raise ProgramError("a program that retrieves its examples never shows other demos; clear them, or compile anew")
    return only_predictor(module)


def _labels(taxonomy: Taxonomy) -> dict[str, Any]:
    content = taxonomy.model_dump(mode="json")
    return {"labels": list(taxonomy.labels), "taxonomy": content, "taxonomy_digest": taxonomy.digest}


def _retrieval(module: NearestDemos, trainset: Sequence[Any]) -> dict[str, Any]:
    """What an artefact says of examples that are retrieved, after proof that they render as DSPy renders them."""
    signature = module.predict.signature
    theirs = adapter().format_demos(signature, module.examples)
    answers = [message["content"] for message in theirs[1::2]]
    if len(answers) != len(module.examples):
        raise RenderError("DSPy shows no example without an input or without an answer; leave such examples out")
    known = [_demo(example, signature, trainset) for example in module.examples]
    found = {
        "k": module.k,
        "vectorizer": VECTORIZER,
        "lead": theirs[0]["content"].partition("[[ ## ")[0],
        "examples": [{**demo, "answer": answer} for demo, answer in zip(known, answers, strict=True)],
        "index": written(module.index.postings),
    }
    ours = examples(Retrieval.from_json(found, tuple(signature.input_fields)), range(len(known)))
    if ours != theirs:
        raise RenderError("DSPy orders examples by whether all their fields are there; give all of them, or none")
    return found


def _rendered(predictor: Any) -> tuple[list[dict[str, str]], str]:
    """All messages but the last, and what stands in the last one under the input fields."""
    names = list(predictor.signature.input_fields)
    marks = {name: f"\u241e{name}\u241e" for name in names}
    *messages, last = adapter().format(predictor.signature, predictor.demos, marks)
    head = "\n\n".join(f"[[ ## {name} ## ]]\n{marks[name]}" for name in names) + "\n\n"
    if not last["content"].startswith(head):
        raise RenderError("the installed DSPy renders input fields in a way this version does not know")
    return messages, last["content"].removeprefix(head)


def _asked(signature: Any) -> dict[str, Any]:
    return {
        "inputs": [_field(name, info) for name, info in signature.input_fields.items()],
        "outputs": [_field(name, info) for name, info in signature.output_fields.items()],
        "instructions": signature.instructions,
    }


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
