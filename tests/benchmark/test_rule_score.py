"""The rule metric, part by part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dspy_reflex.benchmark.rule_score import CONTENT, PARTS, RuleScore, score_rule
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.records.failure import Failure
from dspy_reflex.rule_lint.leaks import COMMON

GOOD = "When an API answers 429, wait and retry at most 3 times with exponential backoff, then report the failure."


def labelled(**fields: Any) -> LabelledFailure:
    """A failure with names, numbers and addresses in it."""
    failure = Failure(
        id="EVT-A1B2C3D4",
        agent_id="mailer",
        task="Send invoice 47112 to Mara Lindqvist",
        actual_outcome="Telegram API returned 429, no retry; /srv/out/a.pdf never reached mara@example.org",
        context={"log": "see https://ops.example.org/t/9 where it said 'please resend me the signed copy before noon'"},
    )
    row: dict[str, Any] = {
        "component": "TOOLS", "key_points": (("retry", "back off"), ("at most", "limit")),
        "existing_rules": ("Before sending a file, verify that the recipient is right.",), **fields,
    }  # fmt: skip
    return LabelledFailure(failure=failure, root_cause="tool_failure", **row)


def parts(score: RuleScore) -> dict[str, float]:
    """The score of each part."""
    return {part.name: part.score for part in score.parts}


def test_a_good_rule_scores_one_and_needs_no_feedback() -> None:
    """Every part is there and nothing of the event is; an HTTP status is part of the mechanism."""
    score = score_rule(GOOD, "TOOLS", labelled())
    assert score.total == pytest.approx(1.0)
    assert score.feedback == ""
    assert list(parts(score)) == list(PARTS)


def test_good_form_without_content_is_worth_nothing() -> None:
    """A rule that fits every failure must not score for being well made."""
    assert sum(CONTENT.values()) == pytest.approx(1.0)
    score = score_rule("Before eating soup, check its heat 3 times, then wait.", "SOUL", labelled())
    assert parts(score)["trigger"] == parts(score)["action"] == parts(score)["bound"] == 1.0
    assert score.total == 0.0


@pytest.mark.parametrize(
    ("rule", "component", "part", "said"),
    [
        (GOOD, "SOUL", "component", "belongs in TOOLS, not in SOUL"),
        (GOOD, None, "component", "not in no file"),
        ("Wait 3 times, then report it.", "TOOLS", "trigger", "Say when the rule applies"),
        ("When it fails, the agent is careful at most 3 times.", "TOOLS", "action", "imperative verb"),
        ("When an API fails, retry the call.", "TOOLS", "bound", "Say how far the rule goes"),
        ("Before sending the file, verify the recipient is right.", "TOOLS", "not_duplicate", "already there"),
        (GOOD + " Stop. Report it. Go on.", "TOOLS", "one_behaviour", "4 sentences"),
        (GOOD + " and wait" * 40, "TOOLS", "one_behaviour", "one behaviour fits into 300"),
    ],
)
def test_each_part_finds_what_it_is_named_for(rule: str, component: str | None, part: str, said: str) -> None:
    """And says in a sentence what to change."""
    score = score_rule(rule, component, labelled())
    assert parts(score)[part] == 0.0
    assert said in score.feedback


def test_key_points_are_a_share_of_the_groups() -> None:
    """One synonym of a group is enough."""
    score = score_rule("When an API fails, back off, then report it.", "TOOLS", labelled())
    assert parts(score)["key_points"] == 0.5
    assert "'at most' or 'limit'" in score.feedback


@pytest.mark.parametrize(
    ("leak", "kind"),
    [
        ("invoice 47112", "a number (47112)"),
        ("EVT-A1B2C3D4", "an id (EVT-A1B2C3D4)"),
        ("mara@example.org", "an e-mail address"),
        ("https://ops.example.org/t/9", "a URL"),
        ("/srv/out/a.pdf", "a path"),
        ("what Mara wants", "a name (Mara)"),
        ('the "no retry" case', "a quotation (no retry)"),
        ("the words please resend me the signed copy before noon", "a quotation (please resend me the signed copy)"),
    ],
)
def test_what_is_copied_from_the_event_halves_the_score(leak: str, kind: str) -> None:
    """Each kind of leak is named."""
    rule = GOOD.replace("the failure", f"{leak} and the failure")
    score = score_rule(rule, "TOOLS", labelled())
    assert parts(score)["no_leak"] == 0.0
    assert kind in score.feedback
    assert score.total == pytest.approx(0.5)


def test_what_is_not_in_the_event_or_is_in_the_reference_is_no_leak() -> None:
    """A rule may name what it is about."""
    elsewhere = GOOD.replace("an API", "the Slack API at https://slack.example/x 90210")
    assert parts(score_rule(elsewhere, "TOOLS", labelled()))["no_leak"] == 1.0
    named = GOOD.replace("an API", "the Telegram API")
    assert parts(score_rule(named, "TOOLS", labelled()))["no_leak"] == 0.0
    assert parts(score_rule(named, "TOOLS", labelled(reference_rule="When Telegram fails, retry.")))["no_leak"] == 1.0


def test_a_duplicate_halves_the_score() -> None:
    """As it could not be used."""
    rows = labelled(), labelled(existing_rules=(GOOD,))
    fresh, repeated = (score_rule(GOOD, "TOOLS", row).total for row in rows)
    assert repeated == pytest.approx(fresh / 2)


def test_parts_without_an_answer_are_left_out() -> None:
    """A row that knows no component cannot say that one is wrong."""
    score = score_rule(GOOD, "SOUL", labelled(component=None, key_points=()))
    assert not {"component", "key_points"} & set(parts(score))
    assert score.total == pytest.approx(1.0)


def test_no_rule_scores_nothing() -> None:
    """It leaks nothing either, but that is no merit."""
    score = score_rule("  ", "TOOLS", labelled())
    assert score.total == 0.0
    assert score.feedback == "There is no rule; write one."


@given(st.text(max_size=400), st.sampled_from(["SOUL", "TOOLS", None, "x"]))
def test_the_total_is_in_the_unit_interval_and_repeatable(rule: str, component: str | None) -> None:
    """Whatever the model wrote."""
    score = score_rule(rule, component, labelled())
    assert 0.0 <= score.total <= 1.0
    assert all(0.0 <= part.score <= 1.0 and part.feedback for part in score.parts)
    assert score == score_rule(rule, component, labelled())


@given(st.integers(100, 10**9), st.sampled_from(["at", "for", "with"]))
def test_a_leaked_number_lowers_the_score(number: int, word: str) -> None:
    """Any number of three digits that the event has, HTTP statuses apart."""
    assume(str(number) not in COMMON)
    row = labelled().model_copy(update={"failure": Failure(task=f"order ref {number}", actual_outcome="")})
    leaky = GOOD.replace("the failure", f"the failure {word} {number}")
    assert score_rule(GOOD, "TOOLS", row).total > score_rule(leaky, "TOOLS", row).total


def test_an_endless_rule_costs_no_time() -> None:
    """A model may write anything."""
    for piece in ("a", "if no ", "/a", "a.", "'a", "@"):
        assert score_rule(piece * 200_000, "TOOLS", labelled()).total < 0.5
