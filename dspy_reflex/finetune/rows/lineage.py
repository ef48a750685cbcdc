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
    taught = [rule] if rule else []
    said = [(case.diagnosis_id, case.diagnosis.program) for case in cases if case.diagnosis]
    return Lineage(
        failures=_once([case.failure.id for case in cases]),
        diagnoses=_once([one for one, _ in said]),
        proposals=_once([one.id for one in (*taught, *others)]),
        review=rule.review.id if rule and rule.review else "",
        programs=_once([*(program for _, program in said), *(one.proposal.proposal.program for one in taught)]),
        rule_sha256=rule.sha256 if rule else "",
        marked=_once([mark for one in (*taught, *cases) for mark in one.marked]),
    )


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
