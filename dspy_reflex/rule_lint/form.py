"""The form of a rule: one imperative behaviour with a trigger and a bound, in one short line.

The words are English, as the proposer's are. What bounds is wider here than in `words.BOUND`, which the rule score is
measured with: there a bound earns points, here its absence keeps a rule from a person.
"""

from __future__ import annotations

import re

from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.rule_lint.problem import Problem
from dspy_reflex.rule_lint.words import BOUND, TRIGGER, has_action, sentences

MAX_SENTENCES = 2
_SCOPE = re.compile(
    r"\b(?:all|any|anything|before|both|complete|each|either|every|exact|first|last|literal|no|none|not|one|same|single"
    r"|stop|whole)\b",
    re.IGNORECASE,
)
"""Words that say how much of something is meant, what is left out, or what comes before what."""


def length(rule: str) -> Problem | None:
    """A rule is 1 to `MAX_RULE_CHARS` characters long."""
    if len(rule.strip()) > 0 and len(rule) <= MAX_RULE_CHARS:
        return None
    return Problem("length", f"Say it in 1 to {MAX_RULE_CHARS} characters; it has {len(rule.strip())}.")


def one_line(rule: str) -> Problem | None:
    """A rule becomes one line of a list."""
    if len(rule.splitlines()) <= 1 and "\t" not in rule:
        return None
    return Problem("one_line", "Write it in one line, without tabs.")


def one_behaviour(rule: str) -> Problem | None:
    """At most two sentences: the second one may say what to do otherwise."""
    if (count := sentences(rule)) <= MAX_SENTENCES:
        return None
    return Problem("one_behaviour", f"Keep to one behaviour: at most {MAX_SENTENCES} sentences, not {count}.")


def imperative(rule: str) -> Problem | None:
    """A clause begins with a verb that commands, or says must, always or never."""
    if has_action(rule):
        return None
    return Problem("imperative", "Begin a clause with the verb of what to do, or say must, always or never.")


def trigger(rule: str) -> Problem | None:
    """It says when it applies."""
    if TRIGGER.search(rule):
        return None
    return Problem("trigger", "Say when it applies: before, when, if or after what.")


def bound(rule: str) -> Problem | None:
    """It says how far it goes; the word that triggers does not bound as well."""
    rest = TRIGGER.sub(" ", rule, count=1)
    if BOUND.search(rest) or _SCOPE.search(rest):
        return None
    return Problem("bound", "Say how far it goes: how many times, how long, of what each or all, or what otherwise.")
