"""Run every check over a data set, however broken it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dspy_reflex.evalset.checks.annotation import choices, evidence, undecided
from dspy_reflex.evalset.checks.finding import Check, Finding
from dspy_reflex.evalset.checks.labels import absent, named_in_text, unbalanced
from dspy_reflex.evalset.checks.private import private
from dspy_reflex.evalset.checks.shortcut import shortcuts
from dspy_reflex.evalset.checks.splits import changed, divided, near_copies
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.records.taxonomy import Taxonomy

QUICK: tuple[Check, ...] = (absent, named_in_text, divided)
"""Cheap enough to be run before every compile and benchmark."""
CHECKS: tuple[Check, ...] = (*QUICK, choices, evidence, undecided, unbalanced, near_copies, private, shortcuts)


def validate(path: Path, taxonomy: Taxonomy) -> tuple[EvalSet, list[Finding]]:
    """Read a data set and say all that is wrong or suspicious; rows that cannot be read are findings, too.

    Raises:
        DatasetError: There is no such file or folder.
        MissingExtraError: A check's library is not installed.
    """
    unreadable = Problems()
    evalset = load_evalset(path, taxonomy, unreadable)
    schema = [Finding("schema", "error", one.where, one.text) for one in unreadable.in_order]
    return evalset, [*schema, *changed(path), *findings(evalset, CHECKS)]


def findings(evalset: EvalSet, checks: Iterable[Check]) -> list[Finding]:
    """What some checks have to say, check by check."""
    return [finding for check in checks for finding in check(evalset)]
