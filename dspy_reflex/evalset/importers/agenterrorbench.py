"""AgentErrorBench (Zhu et al. 2025): failed single-agent runs with the critical step, the module at fault and its error.

`Label/*.json` names the runs, `Original_Failure_Trajectory/**/<id>.json` holds them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from dspy_reflex.evalset.importers.excerpt import Step, around, last_words
from dspy_reflex.evalset.importers.imported import Gathering, canonical, make_row
from dspy_reflex.evalset.importers.reading import Record, Text, parse
from dspy_reflex.taxonomies.load import load_taxonomy
from dspy_reflex.untrusted import as_text

KIND = "AgentErrorBench"
MODULES = {"plan": "planning"}
"""Spellings of modules that its labels use beside the taxonomy's."""
TASK = re.compile(r"Your task(?: is)?(?: to)?: *(\S[^\n]*)")
"""Where the prompts of its environments state the task."""


class _Label(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    trajectory_id: str
    model: str = Field(default="", alias="LLM")
    task_type: str
    critical_failure_step: int
    critical_failure_module: str
    step_annotations: tuple[dict[str, Any], ...]

    @property
    def error(self) -> tuple[str, str]:
        """Type and reasoning of the error that the labelled module made at the critical step."""
        for annotation in self.step_annotations:
            detail = annotation.get(self.critical_failure_module)
            if annotation.get("step") == self.critical_failure_step and isinstance(detail, dict):
                found = cast(dict[str, object], detail)
                return as_text(found.get("failure_type")).strip(), as_text(found.get("reasoning"))
        return "", ""


class _Message(BaseModel):
    role: str
    content: Text = ""


class _Run(BaseModel):
    messages: tuple[_Message, ...] = Field(validation_alias=AliasChoices("messages", "chat_history"))


def import_agenterrorbench(records: Sequence[Record], into: Gathering) -> None:
    """One row a labelled run; its label is `module/error`, since two modules have an error of the same name."""
    labels: list[tuple[Record, _Label]] = []
    runs: dict[str, _Run] = {}
    for record in records:
        if {"messages", "chat_history"} & record.data.keys():
            if run := parse(record, _Run, KIND, into.problems):
                runs[record.name] = run
        elif label := parse(record, _Label, KIND, into.problems):
            labels.append((record, label))
    for record, label in labels:
        run = runs.pop(label.trajectory_id, None)
        if run is None:
            name = label.trajectory_id
            into.problems.add(
                record.where, f"there is no run {name}.json; give the folder with labels and trajectories"
            )
        else:
            _add(record.where, label, run, into)
    for _ in runs:
        into.skip("run without label")


def _add(where: str, label: _Label, run: _Run, into: Gathering) -> None:
    error, reasoning = label.error
    if not error:
        into.skip("no failure type is given")
        return
    module = label.critical_failure_module.strip().lower()
    native = f"{module}/{error}"
    known = canonical(f"{MODULES.get(module, module)}/{error}", load_taxonomy("agenterrorbench").labels)
    if known is None:
        into.skip(f"error outside the taxonomy: {native}")
        return
    turns = [at for at, message in enumerate(run.messages) if message.role == "assistant"]
    if not 1 <= label.critical_failure_step <= len(turns):
        step = label.critical_failure_step
        into.problems.add(where, f"critical_failure_step is {step}, the run has {len(turns)} steps; correct it")
        return
    steps = [Step(message.role, message.content) for message in run.messages]
    row = make_row(
        f"agenterrorbench-{label.trajectory_id}",
        source=f"agenterrorbench/{label.task_type.lower()}",
        agent=label.model,
        task=_task(run),
        actual=last_words(steps),
        trace=around(steps, turns[label.critical_failure_step - 1], label.trajectory_id),
        labels=[known],
        native=[native],
    )
    into.add(where, row, reasoning)


def _task(run: _Run) -> str:
    first = next((message.content for message in run.messages if message.content.strip()), "")
    found = TASK.search(first)
    return found[1] if found else first
