"""Root-cause baselines: the constant answer, keyword rules, TF-IDF with logistic regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from dspy_reflex.benchmark.baselines.keywords import KEYWORDS
from dspy_reflex.benchmark.baselines.learners import Classify, tfidf_logistic_regression
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure


class CauseBaseline(Protocol):
    """Names the root cause of a failure without a language model."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Learn from labelled rows; all baselines get the same ones."""
        ...

    def predict(self, row: LabelledFailure) -> tuple[str, float]:
        """A label and the probability, in [0, 1], that it is right."""
        ...


def cause_baselines(labels: Sequence[str]) -> list[CauseBaseline]:
    """All baselines that make sense for a label set: without one of the six causes there are no keyword rules."""
    constant, learner = ConstantAnswer(labels), TfidfLogisticRegression()
    if set(KEYWORDS) & set(labels):
        return [constant, KeywordRules(labels), learner]
    return [constant, learner]


def text_of(row: LabelledFailure) -> str:
    """What a baseline reads: the input fields of the program, joined."""
    return "\n".join(row.inputs.values())


class ConstantAnswer:
    """Always the most frequent label of the trainset; the first in the order of the labels if several are."""

    name = "constant"

    def __init__(self, labels: Sequence[str]) -> None:
        """Take the label set, in its order."""
        self._labels = tuple(labels)
        self._answer = ("", 0.0)

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Count."""
        counts = Counter(row.root_cause for row in train)
        most = max(self._labels, key=lambda label: counts[label])
        self._answer = (most, counts[most] / _size(train))

    def predict(self, row: LabelledFailure) -> tuple[str, float]:
        """The most frequent label and its share."""
        return self._answer


class KeywordRules:
    """The first cause with a matching keyword, else the most frequent one; as sure as the rule was right on train."""

    name = "keyword_rules"

    def __init__(self, labels: Sequence[str]) -> None:
        """Keep the rules whose cause is a label."""
        self._rules = [(label, pattern) for label, pattern in KEYWORDS.items() if label in labels]
        self._otherwise = ConstantAnswer(labels)
        self._precision: dict[str, float] = {}

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Measure each rule; the rules themselves are not learnt."""
        self._otherwise.fit(train)
        fired = [(self._match(row), row.root_cause) for row in train]
        for label, _ in self._rules:
            right = [gold == label for match, gold in fired if match == label]
            self._precision[label] = (sum(right) + 1) / (len(right) + 2)  # a rule that never fired knows nothing: 1/2

    def predict(self, row: LabelledFailure) -> tuple[str, float]:
        """The label of the first rule that matches."""
        label = self._match(row)
        return (label, self._precision[label]) if label else self._otherwise.predict(row)

    def _match(self, row: LabelledFailure) -> str:
        text = text_of(row)
        return next((label for label, pattern in self._rules if pattern.search(text)), "")


class TfidfLogisticRegression:
    """Bag of words with logistic regression, trained on the same rows as the program."""

    name = "tfidf_logistic_regression"

    def __init__(self) -> None:
        """Know nothing yet."""
        self._classify: Classify = lambda _: ("", 0.0)

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Fit on the text and the root cause."""
        _size(train)
        self._classify = tfidf_logistic_regression(
            [text_of(row) for row in train], [str(row.root_cause) for row in train]
        )

    def predict(self, row: LabelledFailure) -> tuple[str, float]:
        """The most probable label."""
        return self._classify(text_of(row))


def _size(train: Sequence[LabelledFailure]) -> int:
    if not train:
        raise BenchmarkError("the baselines have no rows to learn from; name some with --trainset")
    return len(train)
