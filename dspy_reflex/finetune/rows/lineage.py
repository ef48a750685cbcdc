"""What a row rests on, so that it can be found when something behind it is taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dspy_reflex.finetune.material import Case, Decided
from dspy_reflex.finetune.row import Lineage


def lineage(rule: Decided | None, cases: Sequence[Case], others: Iterable[Decided] = ()) -> Lineage:
    """What rows of a lesson rest on.

    Args:
        rule: The rule that is taught; None where only causes are.
        cases: Failures whose words are in the row.
        others: Further rules whose words are in it.
    """
    said = [case for case in cases if case.diagnosis]
    classifiers = [case.diagnosis.program for case in said if case.diagnosis]
    return Lineage(
        failures=_once(case.failure.id for case in cases),
        diagnoses=_once(case.diagnosis_id for case in said),
        proposals=_once(one.id for one in (*([rule] if rule else []), *others)),
        review=rule.review.id if rule and rule.review else "",
        programs=_once([*classifiers, *([rule.proposal.proposal.program] if rule else [])]),
        rule_sha256=rule.sha256 if rule else "",
        marked=_once(mark for one in (*([rule] if rule else []), *cases) for mark in one.marked),
    )


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
