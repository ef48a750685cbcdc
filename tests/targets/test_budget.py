"""Which rules to let go when there are too many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.targets.budget import RuleUse, candidates, likeness, tokens
from tests.targets.rule_files import rule

RETRY = "When a tool answers 429, wait and retry at most three times, then tell the user."
RETRY_AGAIN = "When a tool answers 429, wait and retry at most 3 times, then tell the user."
ASK = "When two instructions contradict each other, ask which one counts before you start."
CHECK = "Before reporting a sum, add the numbers again from the source and compare."


def use(number: int, text: str, fired: int = 0, day: int | None = None) -> RuleUse:
    """A rule that was put in on a day, by default in the order of the numbers."""
    return RuleUse(
        rule(number, text), fired, datetime(2026, 3, 6, tzinfo=UTC) + timedelta(days=number if day is None else day)
    )


uses = st.lists(
    st.tuples(st.sampled_from([RETRY, RETRY_AGAIN, ASK, CHECK]), st.integers(0, 2), st.integers(0, 9)), max_size=6
).map(lambda rows: [use(number, *row) for number, row in enumerate(rows)])


def test_four_characters_are_a_token_rounded_up() -> None:
    assert [tokens("x" * length) for length in (0, 1, 4, 5, 400)] == [0, 1, 1, 2, 100]


def test_superseded_goes_before_never_fired_before_oldest() -> None:
    some = [use(1, CHECK, fired=3), use(2, ASK), use(3, RETRY, fired=9), use(4, RETRY_AGAIN, fired=1)]
    found = candidates(some, 10**6)
    assert [(one.rule.rule_id, one.reason, one.by) for one in found] == [
        ("prop_3", "superseded", "prop_4"),
        ("prop_2", "never fired", None),
        ("prop_1", "oldest", None),
        ("prop_4", "oldest", None),
    ]


def test_it_is_the_newest_of_those_alike_that_stays() -> None:
    some = [use(1, RETRY, day=9), use(2, RETRY_AGAIN, day=1), use(3, RETRY, day=5)]
    found = candidates(some, 10**6)
    assert [(one.rule.rule_id, one.by) for one in found] == [
        ("prop_2", "prop_1"),
        ("prop_3", "prop_1"),
        ("prop_1", None),
    ]


@given(uses, st.integers(-5, 300))
def test_no_more_goes_than_has_to(some: list[RuleUse], surplus_tokens: int) -> None:
    found = candidates(some, surplus_tokens)
    freed = [one.tokens for one in found]
    assert sum(freed[:-1]) < max(surplus_tokens, 1)
    assert sum(freed) >= surplus_tokens or len(found) == len(some)
    assert found == candidates(some, 10**6)[: len(found)]
    assert len({one.rule.rule_id for one in found}) == len(found)


def test_rules_on_one_topic_are_not_one_rule() -> None:
    assert likeness(RETRY, RETRY_AGAIN) > 0.8
    assert likeness(RETRY, "When a tool answers 401, renew the token once, then tell the user.") < 0.8
    assert likeness(RETRY, CHECK) < 0.3


@given(st.text(), st.text())
def test_likeness_is_a_share(one: str, other: str) -> None:
    assert 0.0 <= likeness(one, other) == likeness(other, one) <= 1.0
    assert likeness(one, one) == 1.0
