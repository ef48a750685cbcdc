"""What is found in a rule's words."""

from __future__ import annotations

import pytest

from dspy_reflex.rule_lint.words import has_action, mentions, sentences, similarity


@pytest.mark.parametrize(
    ("phrase", "rule", "found"),
    [
        ("retry", "It retries", True),
        ("retry", "Retrieve it", False),
        ("verify", "after verification", True),
        ("calculat", "a calculation", True),
        ("log", "by logic", False),
        ("log", "was logged", True),
        ("check file", "Check that the file is there", True),
        ("check file", "check in all places, then file", False),
        ("double-check", "Double check it", True),
        ("UTC", "in utc.", True),
        ("test", "the contest", False),
        ("", "anything", False),
    ],
)
def test_a_phrase_is_found_in_any_inflection(phrase: str, rule: str, found: bool) -> None:
    """At the beginning of words, with at most two words between."""
    assert mentions(rule, phrase) is found


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Verify the date.", True),
        ("When x, verify the date.", True),
        ("Explicitly verify the date.", True),
        ("If x: re-list all.", True),
        ("The agent must stop.", True),
        ("The agent is careful.", False),
        ("When the check fails, the agent tends to report.", False),
    ],
)
def test_a_command_is_an_imperative_or_a_must(rule: str, command: bool) -> None:
    """A description is neither."""
    assert has_action(rule) is command


def test_sentences_are_counted_without_abbreviations_and_versions() -> None:
    """Lines count, too."""
    assert [sentences(text) for text in ("A b. C d.", "Use e.g. this.", "Use v1.2 here.", "One\nTwo", "")] == [
        2,
        1,
        1,
        2,
        0,
    ]


def test_likeness_ignores_order_and_inflection() -> None:
    """Other words are another rule."""
    assert similarity("Before sending, verify recipients", "Verify the recipient before sending it") > 0.9
    assert similarity("Before sending, verify recipients", "When a call fails, retry twice") < 0.4
