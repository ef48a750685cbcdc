"""Who&When (Zhang et al. 2025): multi-agent runs, of which people said who failed and when, and in free text why.

It has no classes. Its rows therefore have no root cause; they are to be labelled, and `label_native` is the agent and the
step. See the preset `whowhen` for a coding of its reasons by others, which comes as a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import AliasChoices, BaseModel, Field

from dspy_reflex.evalset.importers.excerpt import Step, around, last_words
from dspy_reflex.evalset.importers.imported import Gathering, make_row
from dspy_reflex.evalset.importers.reading import Record, Text, parse

KIND = "Who&When"


class _Turn(BaseModel):
    content: Text = ""
    role: str = ""
    name: str | None = None


class _Run(BaseModel):
    question: str
    question_id: Text = Field(alias="question_ID")
    history: tuple[_Turn, ...]
    mistake_agent: str
    mistake_step: int
    mistake_reason: Text = ""
    ground_truth: Text = Field(default="", validation_alias=AliasChoices("ground_truth", "groundtruth"))


def import_whowhen(records: Sequence[Record], into: Gathering) -> None:
    """One row a run; the files of both parts, or the hub's data set."""
    for record in records:
        run = parse(record, _Run, KIND, into.problems)
        if run is None:
            continue
        if not 0 <= run.mistake_step < len(run.history):
            steps = len(run.history)
            into.problems.add(
                record.where, f"mistake_step is {run.mistake_step}, the run has {steps} steps; correct it"
            )
            continue
        _add(record.where, run, into)


def _add(where: str, run: _Run, into: Gathering) -> None:
    # Only the runs of generated teams name their speakers; in the others the role is the speaker.
    part = "Algorithm-Generated" if any(turn.name for turn in run.history) else "Hand-Crafted"
    name = f"whowhen-{part.split('-')[0].lower()}-{run.question_id}"
    steps = [Step(turn.name or turn.role, turn.content) for turn in run.history]
    row = make_row(
        name,
        source=f"whowhen/{part}",
        agent=run.mistake_agent,
        task=run.question,
        expected=run.ground_truth,
        actual=last_words(steps),
        trace=around(steps, run.mistake_step, name),
        labels=(),
        native=(run.mistake_agent, f"step {run.mistake_step}"),
    )
    into.add(where, row, run.mistake_reason)
