"""The rule metric: deterministic, named part by part, each part a score in [0, 1] and one sentence of feedback.

It is what `benchmark rule` reports and what the optimizers maximise. It measures form and coverage, not truth: a rule
that names the right things in the right shape scores high even if a person would word it otherwise. Standard library
only, because a score must not change with somebody else's release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.rule_lint.leaks import leaks
from dspy_reflex.rule_lint.words import BOUND, TRIGGER, any_similar, has_action, mentions, sentences
from dspy_reflex.untrusted import as_text

CONTENT: Mapping[str, float] = {"component": 0.25, "key_points": 0.75}
"""What a rule has to say, and what each counts. A part that a row has no answer for leaves its weight to the other."""

FORM = ("trigger", "action", "bound", "one_behaviour")
"""How it has to be said. The mean of these multiplies the content: good form without content is worth nothing."""

SPOILS = ("no_leak", "not_duplicate")
"""A rule that fails one of these could not be used at all: its total is halved."""
MAX_SIMILARITY = 0.8
"""A rule this like one that is there says nothing new (see `rule_lint.words.similarity`)."""
MAX_SENTENCES = 2
MAX_READ = 2_000
"""Characters of a rule that are looked at: what is longer has failed `one_behaviour` and must not cost minutes."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a rule's score."""

    name: str
    score: float
    """In [0, 1]."""
    feedback: str
    """One sentence: what is right, or what to change."""


@dataclass(frozen=True, slots=True)
class RuleScore:
    """A rule's score and where it comes from."""

    total: float
    """Content times form, in [0, 1]; halved by a leak or a duplicate; 0 for no rule."""
    parts: tuple[Part, ...]

    @property
    def feedback(self) -> str:
        """What to change, one sentence for each part that is not perfect."""
        return " ".join(dict.fromkeys(part.feedback for part in self.parts if part.score < 1.0))


def score_rule(rule: str, component: str | None, labelled: LabelledFailure) -> RuleScore:
    """Score one proposed rule against what is known of its failure.

    Args:
        rule: The text of the rule.
        component: The rule file that it was proposed for.
        labelled: The failure, with the right component, key points and existing rules where people gave them.
    """
    rule = rule.strip()
    if not rule:
        return RuleScore(0.0, tuple(Part(name, 0.0, "There is no rule; write one.") for name in _applicable(labelled)))
    parts = tuple(_score(name, rule, component or "", labelled) for name in _applicable(labelled))
    return RuleScore(_total({part.name: part.score for part in parts}), parts)


def _total(scores: Mapping[str, float]) -> float:
    known = {name: weight for name, weight in CONTENT.items() if name in scores}
    content = sum(weight * scores[name] for name, weight in known.items()) / sum(known.values()) if known else 1.0
    form = sum(scores[name] for name in FORM) / len(FORM)
    spoilt = any(scores[name] == 0.0 for name in SPOILS)
    return content * form / 2 if spoilt else content * form


def _applicable(labelled: LabelledFailure) -> list[str]:
    """The parts that this row can be scored on."""
    unknown = {"component": labelled.component is None, "key_points": not any(labelled.key_points)}
    return [name for name in PARTS if not unknown.get(name, False)]


def _score(name: str, rule: str, component: str, labelled: LabelledFailure) -> Part:
    text = rule if name == "one_behaviour" else rule[:MAX_READ]
    score, feedback = PARTS[name](text, component, labelled)
    return Part(name, score, feedback)


Scored = tuple[float, str]


def _component(_: str, component: str, labelled: LabelledFailure) -> Scored:
    if component == labelled.component:
        return 1.0, f"{component} is the right file."
    return 0.0, f"The rule belongs in {labelled.component}, not in {component or 'no file'}."


def _key_points(rule: str, _: str, labelled: LabelledFailure) -> Scored:
    groups = [group for group in labelled.key_points if group]
    missing = [group for group in groups if not any(mentions(rule, phrase) for phrase in group)]
    if not missing:
        return 1.0, "All key points are covered."
    wanted = "; ".join(" or ".join(repr(phrase) for phrase in group) for group in missing)
    return 1 - len(missing) / len(groups), f"The rule should also mention {wanted}."


def _trigger(rule: str, _: str, __: LabelledFailure) -> Scored:
    if found := TRIGGER.search(rule):
        return 1.0, f"The trigger is there ({found[0].lower()!r})."
    return 0.0, "Say when the rule applies: before, when, if or after what."


def _action(rule: str, _: str, __: LabelledFailure) -> Scored:
    if has_action(rule):
        return 1.0, "The action is there."
    return 0.0, "Command one action with an imperative verb."


def _bound(rule: str, _: str, __: LabelledFailure) -> Scored:
    # The word that triggers does not bound as well: `once` may do either, and not both.
    rest = TRIGGER.sub(" ", rule, count=1)
    if found := BOUND.search(rest):
        return 1.0, f"The bound is there ({found[0].lower()[:30]!r})."
    return 0.0, "Say how far the rule goes: how many times, how long, or what to do otherwise."


def _no_leak(rule: str, _: str, labelled: LabelledFailure) -> Scored:
    allowed = (labelled.reference_rule or "", *labelled.existing_rules)
    if found := leaks(rule, event_text(labelled), allowed):
        return 0.0, f"The rule copies from this one event: {', '.join(found)}; say it generally."
    return 1.0, "Nothing of the one event is in it."


def _not_duplicate(rule: str, _: str, labelled: LabelledFailure) -> Scored:
    if any_similar(rule, labelled.existing_rules, MAX_SIMILARITY):
        return 0.0, "A rule that is already there says this; propose what it lacks."
    return 1.0, "No existing rule says this."


def _one_behaviour(rule: str, _: str, __: LabelledFailure) -> Scored:
    if len(rule) > MAX_RULE_CHARS:
        return 0.0, f"The rule has {len(rule)} characters; one behaviour fits into {MAX_RULE_CHARS}."
    if (count := sentences(rule)) > MAX_SENTENCES:
        return 0.0, f"The rule has {count} sentences; one behaviour fits into {MAX_SENTENCES}."
    return 1.0, "It is one behaviour."


def event_text(labelled: LabelledFailure) -> str:
    """All text of the failure that a rule could have copied from, unclipped."""
    failure = labelled.failure
    fields: tuple[Any, ...] = (
        failure.id, failure.agent_id, failure.task, failure.expected_outcome, failure.actual_outcome, failure.context,
    )  # fmt: skip
    return "\n".join(as_text(value) for value in fields)


PARTS: Mapping[str, Callable[[str, str, LabelledFailure], Scored]] = {
    "component": _component,
    "key_points": _key_points,
    "trigger": _trigger,
    "action": _action,
    "bound": _bound,
    "no_leak": _no_leak,
    "not_duplicate": _not_duplicate,
    "one_behaviour": _one_behaviour,
}
"""How each part is scored: `(rule, component, labelled) -> (score, feedback)`."""
