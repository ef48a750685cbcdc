"""Rule baselines: one fixed rule per cause, and the rule of the nearest training failure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from dspy_reflex.benchmark.baselines.cause import text_of
from dspy_reflex.benchmark.baselines.learners import medoid, nearest_text
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.evalset.labelled import LabelledFailure


class RuleAnswer(NamedTuple):
    """A proposed rule and the file that it belongs in."""

    component: str
    rule: str


class RuleBaseline(Protocol):
    """Proposes a rule for a failure whose root cause is known, without a language model."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Learn from rows that have a reference rule."""
        ...

    def predict(self, row: LabelledFailure) -> RuleAnswer:
        """A rule for one failure."""
        ...


def rule_baselines() -> list[RuleBaseline]:
    """All of them."""
    return [FixedRule(), NearestTrainingRule()]


FIXED: Mapping[str, RuleAnswer] = {
    "tool_failure": RuleAnswer(
        "TOOLS",
        "When a tool or API call fails, times out or returns incomplete data, retry at most 3 times with exponential "
        "backoff, then report the failure instead of continuing.",
    ),
    "instruction_ambiguity": RuleAnswer(
        "SOUL",
        "When instructions are unclear, contradictory or lack a detail, ask one clarifying question before acting; if "
        "nobody answers, state the assumption and choose what can be undone.",
    ),
    "context_loss": RuleAnswer(
        "AGENTS",
        "Before each step, re-read the task, the constraints and the notes of earlier steps, and carry all of them "
        "into every hand-over or summary; if one is missing, stop and look it up.",
    ),
    "knowledge_gap": RuleAnswer(
        "AGENTS",
        "Before using an interface, convention or domain fact from memory, look it up in the current documentation; "
        "if there is none, say so instead of guessing.",
    ),
    "overconfidence": RuleAnswer(
        "SOUL",
        "Before stating a fact or reporting success, verify it with a tool or source; if it cannot be verified, say "
        "that it is unverified instead of asserting it.",
    ),
    "reasoning_error": RuleAnswer(
        "AGENTS",
        "Before giving a result, list the premises and recompute every step from them; if a check disagrees, correct "
        "the step and repeat the check at most twice.",
    ),
}
"""A good general rule for each of the six causes, written by hand and fitted to no rows."""


class FixedRule:
    """One rule per cause: ours for the six causes, the most central training rule for others."""

    name = "fixed_rule_per_cause"

    def __init__(self) -> None:
        """Start with the rules written by hand."""
        self._rules = dict(FIXED)
        self._otherwise = RuleAnswer("", "")

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Find a rule for the causes that have none."""
        rows = _with_rules(train)
        self._otherwise = _central(rows)
        for cause, group in _by_cause(rows).items():
            self._rules.setdefault(cause, _central(group))

    def predict(self, row: LabelledFailure) -> RuleAnswer:
        """The rule of the row's root cause."""
        return self._rules.get(str(row.root_cause), self._otherwise)


class NearestTrainingRule:
    """The reference rule of the training failure with the same root cause whose text is nearest (TF-IDF cosine)."""

    name = "nearest_training_rule"

    def __init__(self) -> None:
        """Know nothing yet."""
        self._nearest: dict[str, Callable[[LabelledFailure], LabelledFailure]] = {}
        self._of_all: Callable[[LabelledFailure], LabelledFailure] | None = None

    def fit(self, train: Sequence[LabelledFailure]) -> None:
        """Index the training failures, all together and by cause."""
        rows = _with_rules(train)
        self._of_all = _index(rows)
        self._nearest = {cause: _index(group) for cause, group in _by_cause(rows).items()}

    def predict(self, row: LabelledFailure) -> RuleAnswer:
        """The neighbour's rule; any cause's where no training row has this one."""
        find = self._nearest.get(str(row.root_cause), self._of_all)
        if find is None:
            raise BenchmarkError("the nearest training rule was asked for before it saw a trainset")
        return _answer(find(row))


def _with_rules(train: Sequence[LabelledFailure]) -> list[LabelledFailure]:
    rows = [row for row in train if row.reference_rule]
    if not rows:
        raise BenchmarkError("the rule baselines need rows with a reference_rule; name some with --trainset")
    return rows


def _by_cause(rows: Sequence[LabelledFailure]) -> dict[str, list[LabelledFailure]]:
    groups: dict[str, list[LabelledFailure]] = defaultdict(list)
    for row in rows:
        groups[str(row.root_cause)].append(row)
    return groups


def _index(rows: Sequence[LabelledFailure]) -> Callable[[LabelledFailure], LabelledFailure]:
    find = nearest_text([text_of(row) for row in rows])
    return lambda row: rows[find(text_of(row))]


def _central(rows: Sequence[LabelledFailure]) -> RuleAnswer:
    """The rule nearest to the others, in the file that most of them are in."""
    files = Counter(row.component for row in rows if row.component)
    component = max(sorted(files), key=lambda name: files[name]) if files else ""
    return RuleAnswer(component, str(rows[medoid([str(row.reference_rule) for row in rows])].reference_rule))


def _answer(row: LabelledFailure) -> RuleAnswer:
    return RuleAnswer(row.component or "", str(row.reference_rule))
