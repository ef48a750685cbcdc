"""Baselines learn from the trainset alone and answer what they are named for."""

from __future__ import annotations

import pytest

from dspy_reflex.benchmark.baselines.cause import (
    ConstantAnswer,
    KeywordRules,
    TfidfLogisticRegression,
    cause_baselines,
    text_of,
)
from dspy_reflex.benchmark.baselines.rule import FIXED, FixedRule, NearestTrainingRule, RuleAnswer
from dspy_reflex.benchmark.rule_score import score_rule
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.records.failure import Failure
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.benchmark.contest import LABELS, row, rows

SIX = load_taxonomy("six").labels


def told(outcome: str, cause: str = "tool_failure", **fields: object) -> LabelledFailure:
    """A failure with this outcome."""
    return LabelledFailure.model_validate(
        {"failure": Failure(task="do it", actual_outcome=outcome), "root_cause": cause, **fields}
    )


def test_the_constant_answer_is_the_most_frequent_label_and_its_share() -> None:
    """Ties go by the order of the labels."""
    constant = ConstantAnswer(LABELS)
    constant.fit([row(1, "blue"), row(2, "blue"), row(3, "green")])
    assert constant.predict(row(4)) == ("blue", pytest.approx(2 / 3))
    constant.fit([row(1, "blue"), row(2, "green")])
    assert constant.predict(row(4)) == ("green", 0.5)


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        ("API returned 429, no retry", "tool_failure"),
        ("length of the summary was unspecified", "instruction_ambiguity"),
        ("forgot the label after compaction", "context_loss"),
        ("used a deprecated endpoint", "knowledge_gap"),
        ("stated it as fact without verification", "overconfidence"),
        ("assumed that the file exists", "reasoning_error"),
        ("nothing of the kind", "context_loss"),
    ],
)
def test_keyword_rules_answer_the_examples_of_the_table(outcome: str, cause: str) -> None:
    """And else the most frequent label of the trainset."""
    keywords = KeywordRules(SIX)
    keywords.fit([told("x", "context_loss"), told("y", "context_loss"), told("429", "tool_failure")])
    assert keywords.predict(told(outcome))[0] == cause


def test_a_keyword_rule_is_as_sure_as_it_was_right() -> None:
    """With one imagined hit and miss; never fired means one half."""
    keywords = KeywordRules(SIX)
    keywords.fit([told("429"), told("503"), told("timeout", "context_loss")])
    assert keywords.predict(told("429")) == ("tool_failure", 3 / 5)
    assert keywords.predict(told("deprecated")) == ("knowledge_gap", 1 / 2)


def test_other_label_sets_have_no_keyword_rules() -> None:
    """They would be the constant answer under another name."""
    assert [one.name for one in cause_baselines(LABELS)] == ["constant", "tfidf_logistic_regression"]
    assert [one.name for one in cause_baselines(SIX)] == ["constant", "keyword_rules", "tfidf_logistic_regression"]


def test_tfidf_with_logistic_regression_learns_words() -> None:
    """And gives the probability of its answer."""
    learner = TfidfLogisticRegression()
    learner.fit(rows(30))
    answers = [learner.predict(row(number, LABELS[number % 3])) for number in range(100, 112)]
    assert [label for label, _ in answers] == [LABELS[number % 3] for number in range(100, 112)]
    assert all(1 / 3 < confidence <= 1 for _, confidence in answers)


def test_a_trainset_of_one_label_gives_that_label() -> None:
    """scikit-learn would refuse."""
    learner = TfidfLogisticRegression()
    learner.fit([row(1), row(2)])
    assert learner.predict(row(3, "blue")) == ("red", 1.0)


def test_a_baseline_reads_what_the_program_reads() -> None:
    """No unknown field, no label."""
    hidden = Failure.model_validate({"task": "t", "actual_outcome": "a", "context": {"k": "v"}, "reason": "secret"})
    text = text_of(told("x").model_copy(update={"failure": hidden}))
    assert "k: v" in text
    assert "secret" not in text
    assert "tool_failure" not in text


def test_fixed_rules_are_good_general_rules() -> None:
    """Every part that does not depend on the row is there."""
    assert set(FIXED) == set(SIX)
    for cause, answer in FIXED.items():
        score = score_rule(answer.rule, answer.component, told("x", cause))
        assert score.total == pytest.approx(1.0), (cause, score.feedback)


def test_causes_without_a_fixed_rule_get_the_most_central_training_rule() -> None:
    """In the file that most of their rules are in; a cause never seen gets the most central of all."""
    rules = ["Before sending, check the date.", "Before sending, check the date twice.", "Eat fish."]
    train = [row(n, "red", reference_rule=rule, component="SOUL" if n else "TOOLS") for n, rule in enumerate(rules)]
    fixed = FixedRule()
    fixed.fit(train)
    assert fixed.predict(row(9, "red")) == RuleAnswer("SOUL", rules[0])
    assert fixed.predict(row(9, "blue")) == RuleAnswer("SOUL", rules[0])
    assert fixed.predict(told("x", "tool_failure")) == FIXED["tool_failure"]


def test_the_nearest_training_rule_has_the_same_cause_if_there_is_one() -> None:
    """A nearer text with another cause does not count; with no such cause every text does."""
    train = [
        told("the mail bounced", "context_loss", reference_rule="near", component="TOOLS"),
        told("the mail came late", "tool_failure", reference_rule="late", component="SOUL"),
        told("the disk was full", "tool_failure", reference_rule="disk"),
    ]
    nearest = NearestTrainingRule()
    nearest.fit(train)
    assert nearest.predict(told("the mail bounced", "tool_failure")) == RuleAnswer("SOUL", "late")
    assert nearest.predict(told("a disk full of logs", "tool_failure")) == RuleAnswer("", "disk")
    assert nearest.predict(told("the mail bounced", "knowledge_gap")) == RuleAnswer("TOOLS", "near")


def test_baselines_without_rows_say_what_to_do() -> None:
    """Name a trainset."""
    for baseline in cause_baselines(SIX):
        with pytest.raises(BenchmarkError, match="--trainset"):
            baseline.fit([])
    with pytest.raises(BenchmarkError, match="reference_rule"):
        NearestTrainingRule().fit([row(1)])
