"""Rows that teach the root-cause program's task: failures whose cause a person named, or stood by."""

from __future__ import annotations

from dspy_reflex.finetune.material import Case
from dspy_reflex.finetune.row import Row, Turn
from dspy_reflex.finetune.rows.answers import answer, question
from dspy_reflex.finetune.rows.lineage import lineage
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.taxonomy import NO_SECOND
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import cause_inputs

SURE = "1.0"
"""The confidence that is taught. What a trained model states is to be calibrated anew: compiling for it does that."""


def classify(case: Case, said: Diagnosis, family: str, program: Artifact) -> Row:
    """A failure's cause, to imitate.

    Args:
        case: The failure.
        said: What is said of it; its cause is one of the program's labels.
        family: What is learned together with it.
        program: The root-cause program whose prompt is to be answered: the one that was compiled for no model.
    """
    asked = question(program, cause_inputs(case.fields))
    return Row("sft", "classify", asked, _told(program, said), lineage(None, [case]), family)


def _told(program: Artifact, said: Diagnosis) -> tuple[Turn, ...]:
    fields = {
        "reasoning": said.reasoning,
        "evidence": "\n".join(said.evidence),
        "root_cause": str(said.root_cause),
        "second": said.second or NO_SECOND,
        "confidence": SURE,
    }
    return answer(program, fields)
