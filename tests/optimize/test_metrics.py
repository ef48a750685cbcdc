"""Our metrics are ordinary DSPy metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import GOOD_RULE, CauseMetric, rule_metric
from tests.optimize.compiles import labelled

dspy: Any = pytest.importorskip("dspy")


def test_the_right_cause_is_one_and_anything_else_is_nothing() -> None:
    """An answer without a cause is a miss, not an error."""
    metric, example = CauseMetric(), dspy.Example(root_cause="a")
    found = [metric(example, dspy.Prediction(**fields)) for fields in ({"root_cause": "a"}, {"root_cause": "b"}, {})]
    assert found == [1.0, 0.0, 0.0]


def test_a_balanced_metric_gives_every_class_the_same_weight(small: Path) -> None:
    """The constant answer scores 1/classes, whatever the classes' sizes; all right scores 1."""
    rows = [row for i, row in enumerate(labelled(small, "train")) if row.root_cause == "tool_failure" or i % 2]
    metric = CauseMetric.balanced_on(rows)
    classes = {row.root_cause for row in rows}

    def mean(answers: list[str | None]) -> float:
        pairs = zip(rows, answers, strict=True)
        scores = [metric(dspy.Example(root_cause=r.root_cause), dspy.Prediction(root_cause=a)) for r, a in pairs]
        return sum(scores) / len(scores)

    assert mean(["tool_failure"] * len(rows)) == pytest.approx(1 / len(classes))
    assert mean([row.root_cause for row in rows]) == pytest.approx(1.0)


def test_the_rule_metric_knows_the_reference_rule_from_nonsense(small: Path) -> None:
    """While bootstrapping it is a yes or a no."""
    for example in examples_for("rule", labelled(small, "train"), 0):
        good = dspy.Prediction(component=example.component, rule=example.rule)
        bad = dspy.Prediction(component=example.component, rule="Be good.")
        assert rule_metric(example, good) > rule_metric(example, bad)
        assert rule_metric(example, good, trace=[]) == float(rule_metric(example, good) >= GOOD_RULE)
        assert 0 <= rule_metric(example, dspy.Prediction()) <= rule_metric(example, bad) <= 1


def test_examples_show_a_program_nothing_but_its_inputs(small: Path) -> None:
    """The label is no input; what metrics need has a name that DSPy keeps out of prompts."""
    rows = labelled(small, "train")
    for program, inputs in (
        ("root_cause", {"task", "expected_outcome", "actual_outcome", "context"}),
        ("rule", {"failures", "root_cause", "existing_rules"}),
    ):
        for example in examples_for(program, rows, 0):
            assert set(example.inputs().keys()) == inputs
            hidden = {name for name in example.toDict() if name.startswith("dspy_")}
            assert hidden >= {"dspy_id"}


def test_examples_are_shuffled_by_the_seed(small: Path) -> None:
    """All of them, in an order of the seed's."""
    rows = labelled(small, "train")
    orders = [[example.dspy_id for example in examples_for("root_cause", rows, seed)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(row.id for row in rows)


def test_rows_without_a_rule_are_no_examples_of_one(small: Path) -> None:
    """And if none has one, it is said."""
    row = labelled(small, "train")[0].model_copy(update={"reference_rule": None})
    with pytest.raises(DatasetError, match="none of 1 rows"):
        examples_for("rule", [row], 0)
