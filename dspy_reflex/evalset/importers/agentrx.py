"""AgentRx (Barke et al. 2026): failed runs with every failure's step and category, and which of them is the root cause.

Annotations and runs come in files of their own, joined by the run's id. Categories are spelt in several ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from dspy_reflex.evalset.importers.excerpt import Step, around, last_words
from dspy_reflex.evalset.importers.imported import Gathering, canonical, make_row
from dspy_reflex.evalset.importers.reading import Record, Text, parse
from dspy_reflex.taxonomies.load import load_taxonomy

KIND = "AgentRx"
RUN_PREFIX = "tau_retail_"
"""Stands before the ids of the τ-bench runs in the file of runs, and not in that of annotations."""
OTHER_NAMES = {
    "Instruction Adherence Failure": "Instruction/Plan Adherence Failure",
    "Invocation Failure": "Invalid Invocation",
}


class _Model(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class _Failure(_Model):
    failure_id: str
    step_number: int
    step_reason: Text = ""
    failure_category: str
    category_reason: Text = ""
    failed_agent: str = ""


class _Root(_Model):
    failure_id: str
    reason_for_root_cause: Text = ""


class _Annotation(_Model):
    trajectory_id: str
    failure_summary: Text = ""
    failures: tuple[_Failure, ...]
    root_cause: _Root

    @property
    def root(self) -> _Failure | None:
        return next((each for each in self.failures if each.failure_id == self.root_cause.failure_id), None)

    @property
    def explanation(self) -> str:
        reasons = [text for each in self.failures for text in (each.step_reason, each.category_reason)]
        return "\n".join([self.failure_summary, self.root_cause.reason_for_root_cause, *reasons])


class _Part(_Model):
    role: str = ""
    content: Text = ""


class _Turn(_Model):
    index: int
    parts: tuple[_Part, ...] = Field(validation_alias=AliasChoices("substeps", "parts"))


class _Run(_Model):
    trajectory_id: str
    instruction: Text
    steps: tuple[_Turn, ...]


def import_agentrx(records: Sequence[Record], into: Gathering) -> None:
    """One row an annotated run, with the category of its root cause."""
    annotations: list[tuple[Record, _Annotation]] = []
    runs: dict[str, _Run] = {}
    for record in records:
        if "steps" in record.data:
            if run := parse(record, _Run, KIND, into.problems):
                runs[run.trajectory_id.removeprefix(RUN_PREFIX)] = run
        elif annotation := parse(record, _Annotation, KIND, into.problems):
            annotations.append((record, annotation))
    for record, annotation in annotations:
        run = runs.pop(annotation.trajectory_id.removeprefix(RUN_PREFIX), None)
        if run is None:
            name = annotation.trajectory_id
            into.problems.add(record.where, f"there is no run {name!r}; put runs and annotations into one folder")
        else:
            _add(record.where, annotation, run, into)
    for _ in runs:
        into.skip("run without annotation")


def _add(where: str, annotation: _Annotation, run: _Run, into: Gathering) -> None:
    root = annotation.root
    if root is None:
        name = annotation.root_cause.failure_id
        into.problems.add(where, f"root_cause.failure_id {name!r} is none of its failures; correct it")
        return
    label = canonical(root.failure_category, load_taxonomy("agentrx").labels, OTHER_NAMES)
    if label is None:
        into.skip(f"category outside the taxonomy: {root.failure_category}")
        return
    numbered = [(turn.index, Step(part.role, part.content)) for turn in run.steps for part in turn.parts]
    marked = next((at for at, (index, _) in enumerate(numbered) if index == root.step_number), None)
    if marked is None:
        into.problems.add(where, f"step_number is {root.step_number}, the run has no such step; correct it")
        return
    steps = [step for _, step in numbered]
    part = "tau_retail" if run.trajectory_id.startswith(RUN_PREFIX) else "magentic_one"
    row = make_row(
        f"agentrx-{part}-{annotation.trajectory_id.removeprefix(RUN_PREFIX)}",
        source=f"agentrx/{part}",
        agent=root.failed_agent,
        task=run.instruction,
        actual=last_words(steps),
        trace=around(steps, marked, annotation.trajectory_id),
        labels=[label],
        native=[root.failure_category],
    )
    into.add(where, row, annotation.explanation)
