"""What a rule must be before a person may approve it.

A rule ends up in an agent's own instructions, and the text it was proposed from may have been written by anybody. So
nothing is proposed, edited or approved that does not pass: form first, then what it must not hold. Passing says that a
rule is well made and carries nothing known to be dangerous along; whether it is right, a person says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.rule_lint import characters, form, orders, origin
from dspy_reflex.rule_lint.problem import Problem

FORM: tuple[Callable[[str], Problem | None], ...] = (
    form.length, form.one_line, form.one_behaviour, form.imperative, form.trigger, form.bound,
)  # fmt: skip
"""How it has to be said."""
DANGERS: tuple[Callable[[str], Problem | None], ...] = (
    characters.characters, characters.markup, characters.chat, orders.override, orders.oversight, orders.reveal,
    orders.machinery, origin.secret, origin.identifier, origin.address, origin.command,
)  # fmt: skip
"""What it must not hold."""
MAX_READ = 4 * MAX_RULE_CHARS
"""Characters of a rule that are looked at: a longer one has failed, and must not cost minutes."""


def lint(rule: str, *, sources: Sequence[str] = ()) -> tuple[Problem, ...]:
    """Everything that is wrong with a rule.

    Args:
        rule: The rule as it would be written.
        sources: All text of the failures it was proposed for, from which it must not copy.

    Returns:
        One problem for each check that failed, in the order of the checks; none for a rule that may be approved.
    """
    too_long = form.length(rule)
    text = rule[:MAX_READ]
    found = [check(text) for check in (*FORM[1:], *DANGERS)]
    return tuple(problem for problem in (too_long, *found, origin.copied(text, sources)) if problem)
