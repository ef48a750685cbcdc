"""Failures that nothing should be blamed for: what counts is whether a person is asked."""

from __future__ import annotations

import pytest

from dspy_reflex.benchmark.report import render
from dspy_reflex.benchmark.runner import benchmark_abstention, benchmark_cause
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.runtime.lm.model import Completion
from tests.benchmark.contest import contender, row, says

NOTHING = [row(number, None) for number in range(8)]


def half_sure(prompt: str) -> Completion:
    """Sure of the rows with an even number."""
    number = next(int(word) for word in prompt.split() if word.isdecimal())
    return says("red", 0.9 if number % 2 == 0 else 0.2)


def test_the_share_that_a_person_is_asked_about_is_counted() -> None:
    """Below the threshold, or with no usable answer."""
    programs = [
        contender(half_sure, "sure", threshold=0.5),
        contender(lambda _: Completion("what?"), "garbled", threshold=0.5),
        contender(half_sure, "unmeasured", threshold=None),
    ]
    report = benchmark_abstention(NOTHING, programs, dataset="mine/controls")
    assert [(one.name, one.needs_review) for one in report.rows] == [
        ("sure", 0.5),
        ("garbled", 1.0),
        ("unmeasured", 1.0),
    ]
    assert (report.n, report.units, report.rows[1].unparsable) == (8, 8, 8)
    assert report.to_json()["rows"][0]["needs_review"] == 0.5
    assert "| sure | program | 0.50 (" in render(report)


def test_rows_with_and_without_a_cause_are_not_mixed() -> None:
    """They are scored by different measures."""
    program = contender(half_sure, "sure", threshold=0.5)
    with pytest.raises(BenchmarkError, match="has a root cause"):
        benchmark_abstention([*NOTHING, row(9, "red")], [program])
    with pytest.raises(BenchmarkError, match="has no root cause"):
        benchmark_cause([*NOTHING, row(9, "red")], [program], baselines=False)


def test_a_benchmark_of_causes_says_how_many_a_person_is_asked_about() -> None:
    """Blaming nothing is cheap if everything goes to a person."""
    program = contender(half_sure, "sure", threshold=0.5)
    report = benchmark_cause([row(number) for number in range(8)], [program], baselines=False)
    assert (report.rows[0].needs_review, report.rows[0].accuracy_unasked) == (0.5, 1.0)
