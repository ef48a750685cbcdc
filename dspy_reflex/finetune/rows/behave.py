"""Rows that teach an agent to behave as a reviewer corrected it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dspy_reflex.finetune.material import Case, Correction, Decided
from dspy_reflex.finetune.row import Lineage, Row, Turn
from dspy_reflex.finetune.rows.lineage import lineage
from dspy_reflex.finetune.rows.share import falls_in


@dataclass(frozen=True)
class Shares:
    """How often what is done, each in [0, 1]."""

    without_rule: float = 0.5
    """Rows whose system prompt leaves the rule out, so that the behaviour is learned and not only the following."""
    controls: float = 0.2
    """Corrected situations shown once more under a rule that is not about them, so that no rule is over-learned."""


def behave(rule: Decided, case: Case, correction: Correction, rests: Lineage, shares: Shares) -> Iterator[Row]:
    """Imitation, preference, like and dislike, and detect-and-correct, for one corrected failure.

    Of a correction of several turns, the last is what is preferred: there the outcome is decided, as it was in the failure.
    """
    family = rule.family
    bare = falls_in(shares.without_rule, rule.id, case.failure.id)
    asked = question(case, correction, "" if bare else _learned(rule))
    failed = Turn("assistant", case.outcome)
    *before, last = correction.answer
    so_far = (*asked, *before)
    yield Row("sft", "behave", asked, correction.answer, rests, family)
    yield Row("preference", "behave", so_far, (last,), rests, family, rejected=(failed,))
    yield Row("unpaired", "behave", so_far, (last,), rests, family, label=True)
    yield Row("unpaired", "behave", asked, (failed,), rests, family, label=False)
    corrected = _in_turns(rule, failed, correction)
    yield Row("rewarded", "behave", question(case, correction), corrected, rests, family)


def controls(
    rule: Decided, case: Case, correction: Correction, other: Decided, elsewhere: tuple[Case, Correction]
) -> Iterator[Row]:
    """The situation under a rule that is not about it.

    Its right answer stays what it was (a control), and is better than what that rule is for (a counter-example).

    Args:
        rule: The rule that the situation is a lesson of.
        case: The failure.
        correction: What should have been done.
        other: The rule of another mechanism.
        elsewhere: A corrected failure of that other rule.
    """
    there, wrong = elsewhere
    asked, family = question(case, correction, _learned(other)), rule.family
    *before, last = correction.answer
    yield Row("sft", "behave", asked, correction.answer, lineage(rule, [case], [other]), family)
    so_far, rests = (*asked, *before), lineage(rule, [case, there], [other])
    yield Row("preference", "behave", so_far, (last,), rests, family, rejected=wrong.answer[-1:])


def question(case: Case, correction: Correction, told: str = "") -> tuple[Turn, ...]:
    """What the agent is asked: as the reviewer tells it, else the failure's task and context; `told` goes first."""
    asked = correction.asked or (Turn("user", case.situation),)
    if not told:
        return asked
    if asked[0].role == "system":
        return (Turn("system", f"{asked[0].content}\n\n{told}"), *asked[1:])
    return (Turn("system", told), *asked)


def _in_turns(rule: Decided, failed: Turn, correction: Correction) -> tuple[Turn, ...]:
    """Fail, be told, do it right, each answer with its reward (RISE, arXiv 2407.18219)."""
    told = Turn("user", f"That was not right. {rule.text} Try again.")
    right = (Turn(one.role, one.content, 1.0) if one.role == "assistant" else one for one in correction.answer)
    return (Turn("assistant", failed.content, 0.0), told, *right)


def _learned(rule: Decided) -> str:
    return f"Learned rules:\n- {rule.text}"
