"""Rows that teach the root-cause program's task: failures whose cause a person named, or stood by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dspy_reflex.finetune.material import Known
from dspy_reflex.finetune.row import Lineage, Row, Turn
from dspy_reflex.finetune.rows.answers import answer, question
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.taxonomy import NO_SECOND
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import cause_inputs

SURE = "1.0"
"""The confidence that is taught. What a trained model states is to be calibrated anew: compiling for it does that."""


def classify(known: Iterable[Known], program: Artifact) -> Iterator[Row]:
    """One row to imitate for each failure with a cause of the program's label set.

    Args:
        known: Failures and what a person said of them.
        program: The root-cause program whose prompt is to be answered: the one that was compiled for no model.
    """
    for one in known:
        if one.diagnosis.root_cause in program.labels:
            asked = question(program, cause_inputs(one.failure.model_dump()))
            rests = Lineage(failure=one.failure.id, diagnosis=one.diagnosis.program)
            yield Row("sft", "classify", asked, _told(program, one.diagnosis), rests, one.family)


def _told(program: Artifact, diagnosis: Diagnosis) -> tuple[Turn, ...]:
    fields = {
        "reasoning": diagnosis.reasoning,
        "evidence": "\n".join(diagnosis.evidence),
        "root_cause": str(diagnosis.root_cause),
        "second": diagnosis.second or NO_SECOND,
        "confidence": SURE,
    }
    return answer(program, fields)
