"""Rules for the causes that a program names: what changes in a row, what does not, and what is refused."""

from __future__ import annotations

import pytest

from dspy_reflex.benchmark.chain import UNDIAGNOSED, diagnosed
from dspy_reflex.benchmark.runner import benchmark_rule
from dspy_reflex.errors import BenchmarkError
from dspy_reflex.runtime.lm.model import Completion
from tests.benchmark.contest import asked, contender, proposes, row, rows, says


def often_red(prompt: str) -> Completion:
    """Right about red; about green it says nothing that can be used."""
    return Completion("I do not know.") if "it was green" in prompt else says("red")


def test_only_the_cause_of_a_row_changes() -> None:
    """To what the program said; what it could not answer is no cause of anybody's."""
    before = rows(6)
    told = diagnosed(before, contender(often_red))
    assert [row.root_cause for row in told.rows] == ["red", UNDIAGNOSED, "red"] * 2
    assert told.right == 2
    assert [row.model_copy(update={"root_cause": None}) for row in told.rows] == [
        row.model_copy(update={"root_cause": None}) for row in before
    ]
    assert told.named("colours/test", contender(often_red)) == "colours/test, causes by mine (2 of 6 right)"


def test_rules_are_asked_for_by_the_cause_that_was_named() -> None:
    """Whatever the label says."""
    writer = contender(lambda _: proposes("SOUL", "Before you paint, ask."), program="rule")
    benchmark_rule(diagnosed(rows(3), contender(often_red)).rows, [writer], baselines=False)
    assert [next(one for one in ("unknown", "red") if one in prompt) for prompt in asked(writer)] == [
        "red", "unknown", "red",
    ]  # fmt: skip


def test_who_has_seen_the_rows_or_names_no_causes_is_refused() -> None:
    """Before anything is asked."""
    known = rows(3)
    saw = contender(often_red, train=[known[1].row_hash])
    with pytest.raises(BenchmarkError, match="1 of these 3 rows"):
        diagnosed(known, saw)
    assert not asked(saw)
    assert diagnosed(known, saw, allow_seen=True).right == 1
    with pytest.raises(BenchmarkError, match="names no causes; give a root_cause program"):
        diagnosed(known, contender(often_red, program="rule"))


def test_rows_that_have_no_cause_are_refused_as_they_would_be_without() -> None:
    """A program always names one."""
    writer = contender(lambda _: proposes("SOUL", "Ask."), program="rule")
    told = diagnosed([row(0), row(1, None)], contender(often_red))
    with pytest.raises(BenchmarkError, match="no root cause"):
        benchmark_rule(told.rows, [writer], baselines=False)
