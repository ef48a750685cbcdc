"""Two counts are compared as scipy and statsmodels compare them, and nothing is found where there is nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspy_reflex.stages.verifying import rates
from dspy_reflex.stages.verifying.rates import Seen


@st.composite
def seen(draw: st.DrawFn) -> Seen:
    """Some failures of some outcomes."""
    tries = draw(st.one_of(st.integers(1, 60), st.integers(1, 20_000)))
    return Seen(draw(st.integers(0, min(tries, 300))), tries)


@settings(max_examples=150)
@given(seen(), seen())
def test_the_probability_is_that_of_scipy(before: Seen, after: Seen) -> None:
    from scipy import stats

    sp: Any = stats
    table = [[one.times, one.tries - one.times] for one in (before, after)]
    assert rates.p_value(before, after) == pytest.approx(sp.fisher_exact(table).pvalue, rel=1e-6, abs=1e-9)


@settings(max_examples=150)
@given(seen(), seen())
def test_intervals_are_those_of_statsmodels(before: Seen, after: Seen) -> None:
    from statsmodels.stats import proportion

    sm: Any = proportion
    expected = sm.confint_proportions_2indep(*after, *before, method="newcomb", compare="diff")
    assert rates.change(before, after) == pytest.approx(expected, abs=1e-9)
    assert rates.interval(before) == pytest.approx(sm.proportion_confint(*before, method="wilson"), abs=1e-9)


@settings(max_examples=100)
@given(st.lists(seen(), min_size=2, max_size=12))
def test_bursts_are_chi_square_by_degrees_of_freedom(parts: list[Seen]) -> None:
    """As scipy has it, over the table of seen and not seen by part."""
    from scipy import stats

    sp: Any = stats
    table = [[one.times for one in parts], [one.tries - one.times for one in parts]]
    expected = 1.0
    if all(map(sum, table)):
        found = sp.chi2_contingency(table, correction=False)
        expected = max(1.0, found.statistic / found.dof)
    assert rates.burst_of(parts) == pytest.approx(expected)


def test_nothing_seen_says_nothing() -> None:
    nothing = Seen(0, 0)
    assert (nothing.share, rates.p_value(nothing, nothing), rates.interval(nothing)) == (0, 1, (0, 1))
    assert [rates.burst_of(parts) for parts in ([], [nothing] * 3, [Seen(0, 5)] * 2, [Seen(5, 5)] * 2)] == [1] * 4
    assert rates.tries_needed(nothing) == float("inf")


@given(st.integers(1, 300), st.integers(300, 5000))
def test_so_many_tries_are_just_enough_for_a_full_stop(times: int, tries: int) -> None:
    """A failure that stops altogether is told from chance after about that many, and hardly earlier."""
    needed = rates.tries_needed(Seen(times, tries))
    enough = Seen(rates.LEAST_SEEN, round(needed) + 1)
    assert rates.p_value(enough, Seen(0, enough.tries)) < rates.ALPHA
    fewer = Seen(rates.LEAST_SEEN - 2, enough.tries)
    assert rates.p_value(fewer, Seen(0, enough.tries)) >= rates.ALPHA


def test_parts_in_bursts_count_as_fewer() -> None:
    draw = random.Random(0)
    single = [Seen(draw.randint(0, 4), 100) for _ in range(200)]
    tripled = [Seen(3 * times, 3 * tries) for times, tries in single]
    bursts = [Seen(3 * times, tries) for times, tries in single]
    assert rates.burst_of(tripled) == pytest.approx(3 * rates.burst_of(single))
    assert rates.burst_of(bursts) > 2.5 * rates.burst_of(single)
