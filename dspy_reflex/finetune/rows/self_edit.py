"""Rows in which a model states what it should prefer from now on, and answers by it (SEAL, arXiv 2506.10943)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dspy_reflex.finetune.material import Decided
from dspy_reflex.finetune.row import Row, Turn
from dspy_reflex.finetune.rows.behave import lineage, situation


def self_edit(rules: Sequence[Decided]) -> Iterator[Row]:
    """For each approved rule: from its failures to the preference, and from the preference to each corrected answer."""
    for rule in rules:
        if rule.approved and rule.cases:
            stated = Turn("assistant", preference(rule))
            yield Row("sft", "self_edit", (Turn("user", _pattern(rule)),), (stated,), lineage(rule), rule.family)
            for case in rule.cases:
                if case.correction:
                    asked = (Turn("system", stated.content), Turn("user", situation(case.failure)))
                    yield Row("sft", "self_edit", asked, case.correction, lineage(rule, case), rule.family)


def preference(rule: Decided) -> str:
    """The rule as a preference for its pattern."""
    return f"For {_named(rule)}, prefer this: {rule.proposal.rule}"


def _pattern(rule: Decided) -> str:
    told = "\n".join(f"- {situation(case.failure)}" for case in rule.cases)
    return f"These tasks went wrong, each by {_named(rule)}:\n{told}\nState what to prefer from now on."


def _named(rule: Decided) -> str:
    cause = rule.proposal.proposal.root_cause.replace("_", " ")
    symptom = rule.proposal.symptom.replace("_", " ")
    return cause if symptom == "other" else f"{cause} seen as {symptom}"
