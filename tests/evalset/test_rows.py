"""One object to one record; an object with a problem gives none."""

from __future__ import annotations

from typing import Any

import pytest

from dspy_reflex.evalset.lines import Line
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.rows import to_labelled
from tests.evalset.rows import COLOURS, raw


@pytest.mark.parametrize(
    "fields", [{"task": ""}, {"root_cause": None}, {"root_cause": "x"}, {"severity": 1}, {"component": 1}]
)
def test_a_row_with_a_problem_is_no_row(fields: dict[str, Any]) -> None:
    """Nobody can use it by mistake, and every problem of it is noted once."""
    problems = Problems()
    assert to_labelled(Line("a:1", {**raw(1), **fields}), COLOURS.labels, problems) is None
    assert len(problems.found) == 1


def test_the_problems_of_failure_and_label_are_found_together() -> None:
    """Although there is no failure to put the label on."""
    problems = Problems()
    to_labelled(Line("a:1", raw(1, task="", component="X", root_cause="grey")), COLOURS.labels, problems)
    assert [line.split(" ")[1] for line in map(str, problems.found)] == ["root_cause", "task", "component"]
