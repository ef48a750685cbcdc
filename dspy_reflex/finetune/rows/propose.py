"""Rows that teach the rule program's task: what reviewers approved, and what they put it above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dspy_reflex.finetune.material import Case, Decided
from dspy_reflex.finetune.row import Row, Turn
from dspy_reflex.finetune.rows.answers import answer, question
from dspy_reflex.finetune.rows.lineage import lineage
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import rule_inputs


def propose(rule: Decided, shown: Sequence[Case], worse: Sequence[Decided], program: Artifact) -> Iterator[Row]:
    """To imitate and to like: an approved rule. To prefer: it over its words before an edit, and over rejected rules.

    Args:
        rule: An approved rule.
        shown: The failures that it is to be proposed from.
        worse: Rejected rules of its mechanism.
        program: The rule program whose prompt is to be answered: the one that was compiled for no model.
    """
    asked, good = _asked(rule, shown, program), _told(rule, rule.text, program)
    rests, family = lineage(rule, shown), rule.family
    yield Row("sft", "propose", asked, good, rests, family)
    yield Row("unpaired", "propose", asked, good, rests, family, label=True)
    original = _told(rule, rule.proposal.proposal.rule, program)
    if original != good:
        yield Row("preference", "propose", asked, good, rests, family, rejected=original)
    for other in worse:
        rejected = _told(rule, other.text, program)
        yield Row("preference", "propose", asked, good, lineage(rule, shown, [other]), family, rejected=rejected)


def disliked(rule: Decided, shown: Sequence[Case], program: Artifact) -> Row:
    """A rejected rule, as an answer that is not wanted."""
    asked, told = _asked(rule, shown, program), _told(rule, rule.text, program)
    return Row("unpaired", "propose", asked, told, lineage(rule, shown), rule.family, label=False)


def _asked(rule: Decided, shown: Sequence[Case], program: Artifact) -> tuple[Turn, ...]:
    return question(program, rule_inputs([case.fields for case in shown], rule.proposal.proposal.root_cause, ()))


def _told(rule: Decided, text: str, program: Artifact) -> tuple[Turn, ...]:
    made = rule.proposal.proposal
    return answer(program, {"component": made.component, "rule": text, "rationale": made.rationale})
