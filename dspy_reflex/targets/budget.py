"""What our rules take of an agent's attention, and which of them to let go when it is too much.

Tokens are estimated at four characters each, the usual rule of thumb for English text. An agent's own tokenizer would
say something else by a fifth or so, which a budget can bear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dspy_reflex.targets.rule import RuleLine

CHARS_PER_TOKEN = 4
SUPERSEDED_RATIO = 0.8
"""Least likeness, in [0, 1], for one rule to be the other reworded. Of rules that people wrote for 720 different failures,
no two are more than 0.76 alike."""
_WORD = re.compile(r"\w+")

Reason = Literal["superseded", "never fired", "oldest"]
"""Why a rule could go: a newer one says the same, nothing shows that it was ever of use, or it is merely old."""
_ORDER: tuple[Reason, ...] = ("superseded", "never fired", "oldest")


@dataclass(frozen=True)
class RuleUse:
    """A rule and what is known of its use."""

    rule: RuleLine
    fired: int
    """How often it was seen at work."""
    applied_at: datetime
    """When it was put into the file."""


@dataclass(frozen=True)
class Candidate:
    """A rule that could be retired, or merged into another."""

    rule: RuleLine
    reason: Reason
    by: str | None
    """Id of the newer rule that says the same, to merge it into; None without one."""
    tokens: int
    """What it would free."""


def tokens(text: str) -> int:
    """Estimated tokens of a text, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def candidates(uses: Sequence[RuleUse], surplus_tokens: int) -> list[Candidate]:
    """The rules to retire or merge so that at least `surplus_tokens` are freed, the best to go first.

    Rules that a newer one says as well go first, then those that never fired, then the others; the oldest first in each.
    All of them, if even that frees too little; none, if nothing has to go.
    """
    by_age = sorted(uses, key=lambda use: use.applied_at)
    found = [_candidate(use, by_age[place + 1 :]) for place, use in enumerate(by_age)]
    chosen: list[Candidate] = []
    for one in sorted(found, key=lambda one: _ORDER.index(one.reason)):
        if sum(each.tokens for each in chosen) >= surplus_tokens:
            break
        chosen.append(one)
    return chosen


def likeness(one: str, other: str) -> float:
    """Share of words that two rules have in common, in [0, 1]: Dice's coefficient of their sets of words."""
    first, second = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    return 2 * len(first & second) / (len(first) + len(second)) if first or second else 1.0


def _candidate(use: RuleUse, newer: Sequence[RuleUse]) -> Candidate:
    """Why a rule would go, given those that came after it."""
    alike = (each.rule.rule_id for each in reversed(newer) if _same(use.rule, each.rule))
    by = next(alike, None)
    reason: Reason = "superseded" if by else "oldest" if use.fired else "never fired"
    return Candidate(use.rule, reason, by, tokens(f"{use.rule}\n"))


def _same(one: RuleLine, other: RuleLine) -> bool:
    return likeness(one.text, other.text) >= SUPERSEDED_RATIO
