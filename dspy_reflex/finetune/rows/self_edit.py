"""Rows in which a model states what it should prefer from now on, and answers by it (SEAL, arXiv 2506.10943)."""

from __future__ import annotations

from collections.abc import Sequence

from dspy_reflex.finetune.material import Case, Correction, Decided
from dspy_reflex.finetune.row import Lineage, Row, Turn
from dspy_reflex.finetune.rows.behave import question
from dspy_reflex.finetune.rows.lineage import lineage
from dspy_reflex.runtime.inputs import FAILURE_CHARS
from dspy_reflex.untrusted import clip


def stated(rule: Decided, shown: Sequence[Case]) -> Row:
    """From failures to the preference. Here, as the task is to write it, the rule's text is the answer."""
    told = "\n".join(f"- {clip(case.situation, FAILURE_CHARS)}" for case in shown)
    asked = f"These tasks went wrong, each by {_named(rule)}:\n{told}\nState what to prefer from now on."
    answer = (Turn("assistant", preference(rule)),)
    return Row("sft", "self_edit", (Turn("user", asked),), answer, lineage(rule, shown), rule.family)


def derived(rule: Decided, case: Case, correction: Correction, rests: Lineage) -> Row:
    """From the preference to a corrected answer."""
    asked = question(case, correction, preference(rule))
    return Row("sft", "self_edit", asked, correction.answer, rests, rule.family)


def preference(rule: Decided) -> str:
    """The rule as a preference for its pattern."""
    return f"For {_named(rule)}, prefer this: {rule.text}"


def _named(rule: Decided) -> str:
    cause = rule.proposal.proposal.root_cause.replace("_", " ")
    symptom = rule.proposal.symptom.replace("_", " ")
    return cause if symptom == "other" else f"{cause} seen as {symptom}"
