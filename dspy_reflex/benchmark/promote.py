"""Should a candidate replace the current program? Paired answers to the same failures in, a decision out. Pure.

A candidate wins if it is better: the 95 % interval of the difference lies above 0. Or if it is cheaper and not worse by
more than a margin that was stated before. It never wins with a class of failures that it has broken, however good the
total, nor on few units, where a percentile bootstrap errs too often. How often the gate errs is measured by
`benchmarks/promotion_errors.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.predict import CauseAnswer, RuleProposed
from dspy_reflex.benchmark.results import CauseReport, RuleReport
from dspy_reflex.benchmark.statistics import Interval
from dspy_reflex.evalset.labelled import LabelledFailure

MARGIN = 0.03
"""How much worse a cheaper candidate may be, in points of its score, unless told otherwise."""
CHEAPER = 0.05
"""Share of tokens that a candidate must save to be called cheaper."""
ALPHA = 0.05
"""Corrected p-value below which a class that lost recall is called broken."""
MIN_UNITS = 20
"""On fewer, the interval alone would let too many equal candidates win: families or groups, not rows, are evidence."""


@dataclass(frozen=True, slots=True)
class ClassChange:
    """What became of one label."""

    label: str
    n: int
    """Failures with this gold label."""
    before: float
    """Recall of the current program."""
    after: float
    """Recall of the candidate."""
    p: float
    """Exact McNemar within the class, corrected for the number of classes by Holm's method."""

    @property
    def broken(self) -> bool:
        """Whether the candidate is worse on it, beyond chance."""
        return self.after < self.before and self.p < ALPHA


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate beside the current program, on the same failures."""

    metric: Literal["macro-F1", "rule score"]
    candidate: float
    """Its score."""
    current: float
    """The current program's score."""
    difference: float
    interval: Interval
    """95 % interval of the difference: paired bootstrap over units."""
    n: int
    units: int
    """Families or groups that the failures come from."""
    same: bool
    """Whether both gave the same answer to every failure."""
    candidate_tokens: float | None
    """Mean of input and output tokens an answer; None where the model did not always say."""
    current_tokens: float | None
    mcnemar_p: float | None = None
    """Exact, two-sided, on accuracy; None for rules, which are not right or wrong."""
    classes: tuple[ClassChange, ...] = ()
    """By label; empty for rules."""

    @property
    def saved(self) -> float | None:
        """Share of tokens that the candidate saves; below 0 if it takes more, None if that is not known."""
        if not self.candidate_tokens or not self.current_tokens:
            return None
        return 1 - self.candidate_tokens / self.current_tokens

    @property
    def text(self) -> str:
        """Metric, difference and interval, as people read them."""
        low, high = self.interval
        return f"{self.metric} {self.difference:+.3f} [{low:+.3f}, {high:+.3f}]"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the candidate becomes current, and why."""

    promoted: bool
    reason: str
    """One sentence, with the condition that decided or those that failed."""


def compare_causes(
    gold: Sequence[str], units: Sequence[str], candidate: Sequence[CauseAnswer], current: Sequence[CauseAnswer]
) -> Comparison:
    """Compare answers of two root-cause programs, all four row by row."""
    new, old = [answer.label for answer in candidate], [answer.label for answer in current]
    scores = statistics.macro_f1(gold, new), statistics.macro_f1(gold, old)
    return Comparison(
        metric="macro-F1",
        candidate=scores[0],
        current=scores[1],
        difference=scores[0] - scores[1],
        interval=statistics.difference_interval(gold, new, old, units),
        n=len(gold),
        units=len(set(units)),
        same=new == old,
        candidate_tokens=_tokens(candidate),
        current_tokens=_tokens(current),
        mcnemar_p=statistics.mcnemar(_right(gold, new), _right(gold, old)),
        classes=_class_changes(gold, new, old),
    )


def compare_rules(
    units: Sequence[str], candidate: Sequence[RuleProposed], current: Sequence[RuleProposed]
) -> Comparison:
    """Compare rules of two programs, row by row."""
    new, old = ([answer.score.total for answer in answers] for answers in (candidate, current))
    gaps = [one - other for one, other in zip(new, old, strict=True)]
    return Comparison(
        metric="rule score",
        candidate=sum(new) / len(new),
        current=sum(old) / len(old),
        difference=sum(gaps) / len(gaps),
        interval=statistics.mean_difference_interval(gaps, units),
        n=len(gaps),
        units=len(set(units)),
        same=[(one.component, one.rule) for one in candidate] == [(one.component, one.rule) for one in current],
        candidate_tokens=_tokens(candidate),
        current_tokens=_tokens(current),
    )


def compare(report: CauseReport | RuleReport, candidate: str, current: str) -> Comparison:
    """Compare two programs of a benchmark, named as there."""
    units = [case.unit for case in report.cases]
    if isinstance(report, RuleReport):
        rules = {column.name: column.answers for column in report.columns}
        return compare_rules(units, rules[candidate], rules[current])
    told = {column.name: column.answers for column in report.columns}
    return compare_causes([str(case.root_cause) for case in report.cases], units, told[candidate], told[current])


def decide(found: Comparison, margin: float = MARGIN) -> Decision:
    """Whether the candidate becomes current.

    Args:
        found: The comparison.
        margin: How much worse a cheaper candidate may be; at least 0.
    """
    cheaper = found.saved is not None and found.saved >= CHEAPER
    broken = [_broken(change) for change in found.classes if change.broken]
    if found.same and not cheaper:
        return Decision(False, f"it is an A/A copy: the same answers to all {found.n} failures, and not cheaper")
    if found.units < MIN_UNITS:
        return Decision(False, f"{found.units} units (families or groups) are no evidence; {MIN_UNITS} are needed")
    if broken:
        return Decision(False, f"it breaks {' and '.join(broken)}; {found.text} in all")
    if found.interval[0] > 0:
        return Decision(True, f"it is better: {found.text}")
    if found.interval[0] > -margin and cheaper:
        worth = f"it takes {found.saved:.0%} fewer tokens and is not worse by more than {margin:g}"
        return Decision(True, f"{worth}: {found.text}")
    return Decision(False, f"it is not shown to be better: {found.text}; {_why_not_cheaper(found, margin, cheaper)}")


def rows_digest(rows: Sequence[LabelledFailure]) -> str:
    """First 16 hex digits of the SHA-256 of the rows' hashes, in whatever order they stand."""
    return hashlib.sha256("\n".join(sorted(row.row_hash for row in rows)).encode()).hexdigest()[:16]


def _broken(change: ClassChange) -> str:
    return f"{change.label} (recall {change.before:.2f} to {change.after:.2f}, p={change.p:.3f})"


def _why_not_cheaper(found: Comparison, margin: float, cheaper: bool) -> str:
    """Which parts of `cheaper and not worse` failed."""
    reasons = [] if found.interval[0] > -margin else [f"it may be worse by more than {margin:g}"]
    if found.saved is None:
        reasons.append("the model did not say how many tokens its answers took")
    elif not cheaper:
        reasons.append(f"it is not cheaper by {CHEAPER:.0%} (tokens {-found.saved:+.0%})")
    return " and ".join(reasons)


def _tokens(answers: Sequence[CauseAnswer] | Sequence[RuleProposed]) -> float | None:
    counts = [answer.tokens for answer in answers]
    return sum(counts) / len(counts) if all(counts) else None


def _class_changes(
    gold: Sequence[str], new: Sequence[str | None], old: Sequence[str | None]
) -> tuple[ClassChange, ...]:
    labels = sorted(set(gold))
    hits = [_hits(label, gold, new, old) for label in labels]
    corrected = statistics.holm([statistics.mcnemar(*pair) for pair in hits])
    return tuple(
        ClassChange(label, len(after), sum(before) / len(before), sum(after) / len(after), p)
        for label, (after, before), p in zip(labels, hits, corrected, strict=True)
    )


def _hits(
    label: str, gold: Sequence[str], new: Sequence[str | None], old: Sequence[str | None]
) -> tuple[list[bool], list[bool]]:
    """Which failures of one label the candidate and the current program got right."""
    places = [place for place, name in enumerate(gold) if name == label]
    return [new[place] == label for place in places], [old[place] == label for place in places]


def _right(gold: Sequence[str], answers: Sequence[str | None]) -> list[bool]:
    return [one == other for one, other in zip(gold, answers, strict=True)]
