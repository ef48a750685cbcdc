"""Rows that teach the rule program's task: what reviewers approved, and what they put it above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dspy_reflex.finetune.material import Decided
from dspy_reflex.finetune.row import Row, Turn
from dspy_reflex.finetune.rows.answers import answer, question
from dspy_reflex.finetune.rows.behave import lineage
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.inputs import rule_inputs


def propose(rules: Sequence[Decided], program: Artifact) -> Iterator[Row]:
    """To imitate: approved rules. To prefer: an edit over its original, an approved rule over a rejected one.

    Args:
        rules: Approved and rejected ones.
        program: The rule program whose prompt is to be answered: the one that was compiled for no model.
    """
    refused: dict[str, list[Decided]] = {}
    for rule in rules:
        if not rule.approved:
            refused.setdefault(rule.family, []).append(rule)
            yield from _disliked(rule, program)
    for rule in rules:
        if rule.approved and rule.cases:
            yield from _of(rule, refused.get(rule.family, ()), program)


def _of(rule: Decided, refused: Sequence[Decided], program: Artifact) -> Iterator[Row]:
    asked, good = _asked(rule, program), _told(rule, rule.proposal.rule, program)
    rests = lineage(rule)
    yield Row("sft", "propose", asked, good, rests, rule.family)
    yield Row("unpaired", "propose", asked, good, rests, rule.family, label=True)
    original = rule.proposal.proposal.rule
    worse = [original] if original != rule.proposal.rule else []
    for text in dict.fromkeys([*worse, *(one.proposal.rule for one in refused)]):
        worse_told = _told(rule, text, program)
        yield Row("preference", "propose", asked, good, rests, rule.family, rejected=worse_told)


def _disliked(rule: Decided, program: Artifact) -> Iterator[Row]:
    if rule.cases:
        told = _told(rule, rule.proposal.rule, program)
        yield Row("unpaired", "propose", _asked(rule, program), told, lineage(rule), rule.family, label=False)


def _asked(rule: Decided, program: Artifact) -> tuple[Turn, ...]:
    failures = [case.failure.model_dump() for case in rule.cases]
    return question(program, rule_inputs(failures, rule.proposal.proposal.root_cause, ()))


def _told(rule: Decided, text: str, program: Artifact) -> tuple[Turn, ...]:
    made = rule.proposal.proposal
    return answer(program, {"component": made.component, "rule": text, "rationale": made.rationale})
