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
    failures: list[str] = []
    diagnoses: list[str] = []
    programs: list[str] = []
    marked = [*rule.marked] if rule else []
    for case in cases:
        failures.append(case.failure.id)
        marked += case.marked
        if case.diagnosis:
            diagnoses.append(case.diagnosis_id)
            programs.append(case.diagnosis.program)
    if rule:
        programs.append(rule.proposal.proposal.program)
    return Lineage(
        failures=_once(failures),
        diagnoses=_once(diagnoses),
        proposals=_once([one.id for one in (rule, *others) if one]),
        review=rule.review.id if rule and rule.review else "",
        programs=_once(programs),
        rule_sha256=rule.sha256 if rule else "",
        marked=_once(marked),
    )


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
