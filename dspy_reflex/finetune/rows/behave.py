"""Rows that teach an agent to behave as a reviewer corrected it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dspy_reflex.finetune.material import Case, Decided
from dspy_reflex.finetune.row import Lineage, Row, Turn
from dspy_reflex.finetune.rows.share import falls_in
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.untrusted import as_text, clip, neutralise

MAX_CHARS = 8_000
"""Of a situation. What is longer is clipped in the middle, with a mark."""


@dataclass(frozen=True)
class Shares:
    """How often what is done, each in [0, 1]."""

    without_rule: float = 0.5
    """Rows whose system prompt leaves the rule out, so that the behaviour is learned and not only the following."""
    controls: float = 0.2
    """Corrected situations shown once more under a rule that is not about them, so that no rule is over-learned."""


def behave(rules: Sequence[Decided], shares: Shares) -> Iterator[Row]:
    """Imitation, preference, like and dislike, and detect-and-correct, for every correction of an approved rule."""
    taught = [(rule, case) for rule in rules if rule.approved for case in rule.cases if case.correction]
    for rule, case in taught:
        yield from _of(rule, case, shares)
    yield from _controls(taught, shares.controls)


def situation(failure: LoggedFailure) -> str:
    """What the agent was asked and what it had, without what came out."""
    had = as_text(failure.context)
    text = f"{failure.task}\n\n{had}" if had else failure.task
    return clip(neutralise(text), MAX_CHARS)


def lineage(rule: Decided, case: Case | None = None) -> Lineage:
    """What rows of a lesson rest on."""
    review = rule.review
    return Lineage(
        failure=case.failure.id if case else "",
        diagnosis=case.diagnosis.program if case and case.diagnosis else "",
        proposal=rule.proposal.id,
        review=review.id if review else "",
        program=rule.proposal.proposal.program,
        rule_sha256=hashlib.sha256(rule.proposal.rule.encode()).hexdigest(),
    )


def _of(rule: Decided, case: Case, shares: Shares) -> Iterator[Row]:
    correct = case.correction or ()
    asked = Turn("user", situation(case.failure))
    failed = (Turn("assistant", neutralise(case.failure.actual_outcome)),)
    rests = lineage(rule, case)
    bare = falls_in(shares.without_rule, rule.proposal.id, case.failure.id)
    prompt = (asked,) if bare else (_ruled(rule), asked)
    turns = _in_turns(rule, failed[0], correct)
    yield Row("sft", "behave", prompt, correct, rests, rule.family)
    yield Row("preference", "behave", prompt, correct, rests, rule.family, rejected=failed)
    yield Row("unpaired", "behave", prompt, correct, rests, rule.family, label=True)
    yield Row("unpaired", "behave", prompt, failed, rests, rule.family, label=False)
    yield Row("rewarded", "behave", (asked,), turns, rests, rule.family)


def _in_turns(rule: Decided, failed: Turn, correct: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Fail, be told, do it right, each answer with its reward (RISE, arXiv 2407.18219)."""
    told = Turn("user", f"That was not right. {rule.proposal.rule} Try again.")
    rewarded = tuple(Turn(one.role, one.content, 1.0) if one.role == "assistant" else one for one in correct)
    return (Turn("assistant", failed.content, 0.0), told, *rewarded)


def _controls(taught: Sequence[tuple[Decided, Case]], share: float) -> Iterator[Row]:
    """A situation under a rule of the next family; its right answer stays what it was."""
    first = {rule.family: rule for rule, _ in reversed(taught)}
    families = sorted(first)
    if len(families) < 2:
        return
    after = {family: first[families[(place + 1) % len(families)]] for place, family in enumerate(families)}
    for rule, case in taught:
        if falls_in(share, "control", rule.proposal.id, case.failure.id):
            prompt = (_ruled(after[rule.family]), Turn("user", situation(case.failure)))
            yield Row("sft", "behave", prompt, case.correction or (), lineage(rule, case), rule.family)


def _ruled(rule: Decided) -> Turn:
    return Turn("system", f"Learned rules:\n- {rule.proposal.rule}")
