"""How far two annotators agree, beyond what chance would give.

Raw agreement, Cohen's kappa (Cohen 1960) over all labels and per label against the rest, and Krippendorff's alpha
(nominal), computed by scikit-learn and `krippendorff`. Blaming nothing (`root_cause` null) is a label of its own here.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dspy_reflex.errors import DatasetError, MissingExtraError
from dspy_reflex.evalset.labelled import LabelledFailure, Vote

NOTHING = "(nothing)"
"""What a vote for no root cause is called in tables."""
RESAMPLES = 500
"""Bootstrap resamples of units for the interval of kappa."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two annotators over the failures that both of them labelled."""

    annotators: tuple[str, str]
    n: int
    """Failures that both labelled."""
    raw: float
    """Share with the same label."""
    kappa: float
    """Cohen's kappa, in [-1, 1]."""
    interval: tuple[float, float]
    """95 % bootstrap interval of kappa, over units."""
    alpha: float
    """Krippendorff's alpha, nominal."""
    first_or_second: float
    """Share in which one's label is the other's label or second choice."""
    kappa_of: Mapping[str, float]
    """Kappa of each label against all others."""
    confusions: tuple[tuple[str, str, int], ...]
    """Pairs of labels that the two gave the same failure, and how often, most first."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


Pair = tuple[str, str]


def agreement(rows: Iterable[LabelledFailure], annotators: tuple[str, str] | None = None) -> Agreement:
    """Compare two annotators.

    Args:
        rows: Labelled failures with votes.
        annotators: Whose votes; the two with most votes in common by default.

    Raises:
        DatasetError: No two annotators labelled the same failure.
        MissingExtraError: scikit-learn or krippendorff is not installed.
    """
    voted = [(row, {vote.annotator: vote for vote in row.votes}) for row in rows]
    names = annotators or _two_with_most([set(votes) for _, votes in voted])
    both = [(row, votes[names[0]], votes[names[1]]) for row, votes in voted if votes.keys() >= set(names)]
    if not both:
        raise DatasetError(
            f"{' and '.join(names)} have labelled no failure in common; "
            "agreement needs two `votes` a row, as `data label` writes them"
        )
    pairs = [(one.root_cause or NOTHING, other.root_cause or NOTHING) for _, one, other in both]
    near = [_near(one, other) for _, one, other in both]
    differing = Counter(pair if pair[0] < pair[1] else (pair[1], pair[0]) for pair in pairs if pair[0] != pair[1])
    return Agreement(
        annotators=names,
        n=len(pairs),
        raw=sum(one == other for one, other in pairs) / len(pairs),
        kappa=_kappa(pairs),
        interval=_interval(pairs, [row.unit for row, _, _ in both]),
        alpha=_alpha(pairs),
        first_or_second=sum(near) / len(near),
        kappa_of={
            label: _kappa([(str(one == label), str(other == label)) for one, other in pairs])
            for label in sorted({label for pair in pairs for label in pair})
        },
        confusions=tuple((one, other, n) for (one, other), n in differing.most_common()),
    )


def _near(one: Vote, other: Vote) -> bool:
    """Whether one's label is the other's label or second choice; having no second choice is no choice of nothing."""
    labels = [label for label in (one.root_cause, other.root_cause) if label is not None]
    return one.root_cause == other.root_cause or bool({one.second, other.second} & {*labels})


def _two_with_most(votes: Sequence[set[str]]) -> tuple[str, str]:
    names = sorted(set[str]().union(*votes))
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
    if not pairs:
        raise DatasetError("agreement needs the votes of two annotators; `data label --by NAME` writes them")
    return max(pairs, key=lambda pair: sum(one >= set(pair) for one in votes))


def _kappa(pairs: Sequence[Pair]) -> float:
    if len({label for pair in pairs for label in pair}) == 1:
        return 1.0  # one label in all: nothing but agreement, and 0/0 in the formula
    return float(_metrics().cohen_kappa_score([one for one, _ in pairs], [other for _, other in pairs]))


def _alpha(pairs: Sequence[Pair]) -> float:
    try:
        import krippendorff
    except ImportError:
        raise MissingExtraError("agreement", "compile") from None
    labels = sorted({label for pair in pairs for label in pair})
    if len(labels) == 1:
        return 1.0
    codes = [[labels.index(pair[who]) for pair in pairs] for who in (0, 1)]
    return float(krippendorff.alpha(reliability_data=codes, level_of_measurement="nominal"))


def _interval(pairs: Sequence[Pair], units: Sequence[str], seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap that draws whole units: rows of one family are mistaken together."""
    members: dict[str, list[Pair]] = defaultdict(list)
    for unit, pair in zip(units, pairs, strict=True):
        members[unit].append(pair)
    pools, draw = [members[unit] for unit in sorted(members)], random.Random(seed)
    found = sorted(
        _kappa([pair for pool in draw.choices(pools, k=len(pools)) for pair in pool]) for _ in range(RESAMPLES)
    )
    return found[round(0.025 * RESAMPLES)], found[round(0.975 * RESAMPLES) - 1]


def _metrics() -> Any:
    try:
        from sklearn import metrics  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("agreement", "compile") from None
    return metrics
