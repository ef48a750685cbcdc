"""What of a failure goes into a prompt: the same text in both wings, for training, scoring and production alike.

Plain mappings in, plain texts out; standard library only. Fields that are not named here are never rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dspy_reflex.untrusted import CLIPPED, as_text, clip, neutralise

LIMITS = {"task": 2_000, "expected_outcome": 1_500, "actual_outcome": 3_000, "context": 8_000}
"""Characters of each field that a program sees."""
MAX_FAILURES = 5
"""How many failures of one cause a rule is proposed from."""
FAILURE_CHARS = 3_500
RULES_CHARS = 3_000
NOT_STATED = "not stated"


def cause_inputs(failure: Mapping[str, Any]) -> dict[str, str]:
    """The input fields of the root-cause program: `task`, `expected_outcome`, `actual_outcome`, `context`."""
    return {name: _field(failure.get(name), limit) for name, limit in LIMITS.items()}


def rule_inputs(
    failures: Iterable[Mapping[str, Any]], root_cause: str, existing_rules: Iterable[str]
) -> dict[str, str]:
    """The input fields of the rule program: `failures`, `root_cause`, `existing_rules`."""
    texts = [_failure_text(failure) for failure in list(failures)[:MAX_FAILURES]]
    rules = "\n".join(f"- {neutralise(rule)}" for rule in existing_rules)
    return {
        "failures": "\n\n".join(texts),
        "root_cause": root_cause,
        "existing_rules": clip(rules, RULES_CHARS) or NOT_STATED,
    }


def written_by_others(text: str) -> list[str]:
    """What of an input came from the failure: without the words and marks that were put there here."""
    return [] if text == NOT_STATED else CLIPPED.split(text)


def _failure_text(failure: Mapping[str, Any]) -> str:
    fields = cause_inputs(failure)
    return clip("\n".join(f"{name}: {text}" for name, text in fields.items()), FAILURE_CHARS)


def _field(value: Any, limit: int) -> str:
    text = "" if value is None else neutralise(as_text(value)).strip()
    return clip(text, limit) or NOT_STATED
