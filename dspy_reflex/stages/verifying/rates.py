"""Did something become rarer or more frequent? Two counts, each of so many tries, compared without assumptions.

The test is Fisher's exact one (R. A. Fisher, Journal of the Royal Statistical Society 98, 1935): given how many were seen
in all, how probable is a split between before and after at least as odd as this one, if nothing changed? Intervals are
Wilson's for a share (E. B. Wilson, Journal of the American Statistical Association 22, 1927) and Newcombe's for the
difference of two (R. G. Newcombe, Statistics in Medicine 17, 1998, method 10).

All of them take each try to be by itself, and failures come in bursts. So counts are first divided by how far they do,
their design effect (J. N. K. Rao and A. J. Scott, Biometrics 48, 1992), which shows in how much parts of the time differ.
A burst as long as the whole time looked at stays hidden, and looking again and again finds something in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, fsum, inf, lgamma, log2, sqrt
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05
"""How often a verdict may be wrong where nothing changed."""
Z = NormalDist().inv_cdf(1 - ALPHA / 2)
LEAST_SEEN = ceil(log2(2 / ALPHA))
"""Of equally many tries, so many before and none after are the fewest that are no chance: 2 / 2**6 < 0.05."""
TIE = 1e-7
"""Splits whose log probability differs by less are equally odd: digits of `lgamma`."""


class Seen(NamedTuple):
    """How often something was seen, of how many tries; no whole numbers where both were divided."""

    times: float
    tries: float

    @property
    def share(self) -> float:
        """In [0, 1]; 0 of no tries."""
        return self.times / self.tries if self.tries else 0.0


def p_value(before: Seen, after: Seen) -> float:
    """Probability of a split at least as odd if nothing changed, two-sided; counts are rounded. 1 with nothing to see."""
    (times0, tries0), (times1, tries1) = (map(round, before), map(round, after))
    times = times0 + times1
    splits = range(max(0, times - tries1), min(times, tries0) + 1)
    logs = [_log_choose(tries0, one) + _log_choose(tries1, times - one) for one in splits]
    here = logs[times0 - splits.start] + TIE
    all_of_them = _log_choose(tries0 + tries1, times)
    return min(1.0, fsum(exp(one - all_of_them) for one in logs if one <= here))


def interval(seen: Seen) -> tuple[float, float]:
    """The shares that could well have given this; all of [0, 1] without tries."""
    if not seen.tries:
        return 0.0, 1.0
    weight = Z * Z / seen.tries
    middle = (seen.share + weight / 2) / (1 + weight)
    half = Z * sqrt(seen.share * (1 - seen.share) / seen.tries + weight / (4 * seen.tries)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def change(before: Seen, after: Seen) -> tuple[float, float]:
    """The differences, after minus before, that could well have given this."""
    (low0, high0), (low1, high1) = interval(before), interval(after)
    difference = after.share - before.share
    down = sqrt((after.share - low1) ** 2 + (high0 - before.share) ** 2)
    up = sqrt((high1 - after.share) ** 2 + (before.share - low0) ** 2)
    return difference - down, difference + up


def tries_needed(before: Seen) -> float:
    """Tries on either side after which even a change to nothing at all could be told from chance.

    Of what was never seen before, we know that it is rarer than once in those tries; with no tries, nothing.
    """
    return LEAST_SEEN * before.tries / max(before.times, 1) if before.tries else inf


def total(parts: Sequence[Seen], burst: float = 1.0) -> Seen:
    """All parts together, divided by how far what was seen comes in bursts."""
    return Seen(sum(part.times for part in parts) / burst, sum(part.tries for part in parts) / burst)


def burst_of(parts: Sequence[Seen]) -> float:
    """How far what was seen comes in bursts: so many of it count as one. At least 1.

    Pearson's chi-square of the parts about their common share, by its degrees of freedom. Where the parts are of two sides
    that differ, that counts as a burst, too: the price for an error rate that holds.
    """
    share, there = total(parts).share, [part for part in parts if part.tries]
    if not 0 < share < 1 or len(there) < 2:
        return 1.0
    wanted = ((part, part.tries * share) for part in there)
    chi_square = fsum((part.times - mean) ** 2 / (mean * (1 - share)) for part, mean in wanted)
    return max(1.0, chi_square / (len(there) - 1))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
