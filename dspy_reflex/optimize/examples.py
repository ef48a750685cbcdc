"""Labelled failures as DSPy examples, one kind for each program."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import dspy

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.runtime.inputs import cause_inputs, rule_inputs

Examples = list[Any]


def examples_for(program: str, rows: Sequence[LabelledFailure], seed: int) -> Examples:
    """Examples of one program, shuffled by the seed so that file order means nothing.

    Fields whose names start with `dspy_` are for metrics and provenance; DSPy never renders them.

    Raises:
        DatasetError: No row has what the program has to learn.
    """
    make = _cause_example if program == "root_cause" else _rule_example
    usable = [row for row in rows if program == "root_cause" or (row.reference_rule and row.component)]
    if not usable:
        raise DatasetError(
            f"none of {len(rows)} rows has `reference_rule` and `component`; the rule program needs both"
        )
    shuffled = list(usable)
    random.Random(seed).shuffle(shuffled)
    return [make(row) for row in shuffled]


def _cause_example(row: LabelledFailure) -> Any:
    inputs = cause_inputs(row.failure.model_dump())
    example = dspy.Example(**inputs, root_cause=row.root_cause, dspy_id=row.id, dspy_row=row.row_hash)
    return example.with_inputs(*inputs)


def _rule_example(row: LabelledFailure) -> Any:
    inputs = rule_inputs([row.failure.model_dump()], row.root_cause or "", row.existing_rules)
    answers = {"component": row.component, "rule": row.reference_rule}
    return dspy.Example(**inputs, **answers, dspy_id=row.id, dspy_row=row.row_hash, dspy_labelled=row).with_inputs(
        *inputs
    )
