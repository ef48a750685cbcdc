"""Small data sets for the tests of the checks."""

from __future__ import annotations

from typing import Any

from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure
from dspy_reflex.records.failure import Failure
from tests.evalset.rows import COLOURS


def told(number: int, cause: str | None, text: str, **fields: Any) -> LabelledFailure:
    """A row with a text of its own."""
    failure = Failure(id=f"f{number}", agent_id="bot", task="paint it", actual_outcome=text)
    return LabelledFailure(failure=failure, root_cause=cause, where=f"a.jsonl:{number}", **fields)


def evalset(*rows: LabelledFailure, **splits: tuple[LabelledFailure, ...]) -> EvalSet:
    """A set with these rows in train, and other splits."""
    return EvalSet("mine", COLOURS, {"train": rows, **splits})


def brief(found: Finding) -> tuple[str, str, str]:
    """Check, level and place: what a test compares."""
    return found.check, found.level, found.where
