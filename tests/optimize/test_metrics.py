"""Our metrics are ordinary DSPy metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.benchmark.statistics import macro_f1
from dspy_reflex.errors import CompileError, ConfigError, DatasetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import (
    GOOD_RULE,
    CauseMetric,
    cause_criterion,
    check_costs,
    guarded,
    rule_criterion,
    rule_metric,
)
from dspy_reflex.optimize.models.ledger import Stop
from tests.optimize.compiles import labelled

dspy: Any = pytest.importorskip("dspy")

LABELS = ("a", "b", "c")
COSTS = (("a", "b", 4.0), ("b", "a", 2.0))


def told(cause: str | None) -> Any:
    """A prediction; None is one that could not be read."""
    return dspy.Prediction(root_cause=cause) if cause else dspy.Prediction()


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


def test_a_worse_mistake_gets_fewer_points() -> None:
    """Right is 1, the worst there is 0; no answer is as bad as the worst mistake for its cause."""
    metric = CauseMetric(costs=COSTS)
    points = {
        (gold, cause): metric(dspy.Example(root_cause=gold), told(cause))
        for gold in LABELS
        for cause in (*LABELS, None)
    }
    assert [points["a", cause] for cause in (*LABELS, None)] == [1.0, 0.0, 0.75, 0.0]
    assert [points["b", cause] for cause in (*LABELS, None)] == [0.5, 1.0, 0.75, 0.5]
    assert [points["c", cause] for cause in (*LABELS, None)] == [0.75, 0.75, 1.0, 0.75]


def test_a_cheap_mistake_is_no_demo() -> None:
    """While bootstrapping only what is right counts, whatever mistakes cost."""
    metric, example = CauseMetric(costs=COSTS), dspy.Example(root_cause="a")
    assert [bool(metric(example, told(cause), trace=[])) for cause in (*LABELS, None)] == [True, False, False, False]


def test_a_mistake_may_cost_less_than_others() -> None:
    """Costs are relative to 1, the usual one."""
    metric, example = CauseMetric(costs=[("a", "b", 0.25)]), dspy.Example(root_cause="a")
    assert [metric(example, told(cause)) for cause in (*LABELS, None)] == [1.0, 0.75, 0.0, 0.0]


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (("a", "z", 2.0), "no root cause 'z'; there are a, b, c"),
        (("z", "a", 2.0), "no root cause 'z'"),
        (("a", "a", 2.0), "two different causes"),
        (("a", "b", 0.0), "a number above 0"),
        (("a", "b", -1.0), "a number above 0"),
        (("a", "b", float("inf")), "a number above 0"),
        (("a", "b", float("nan")), "a number above 0"),
    ],
)
def test_a_cost_that_cannot_be_used_is_named(cost: tuple[str, str, float], said: str) -> None:
    """One sentence, by the name of the option."""
    check_costs(COSTS, LABELS)
    with pytest.raises(ConfigError, match=f"--cost.*{said}"):
        check_costs([*COSTS, cost], LABELS)


def rows_of(small: Path, number: int = 18) -> list[LabelledFailure]:
    """Some rows, causes in turn."""
    return list(labelled(small, "train"))[:number]


def test_the_criterion_is_macro_f1_of_the_rows_asked_so_far(small: Path) -> None:
    """Not their mean score; with nothing asked it is 0."""
    rows = rows_of(small)
    criterion = cause_criterion(rows)
    labels = [str(row.root_cause) for row in rows]
    answers = [labels[0] if place % 3 else label for place, label in enumerate(labels)]
    for number in (7, 18):
        predictions = {row.row_hash: told(cause) for row, cause in zip(rows[:number], answers, strict=False)}
        assert criterion(predictions) == macro_f1(labels[:number], answers[:number])
    assert criterion({row.row_hash: told(row.root_cause) for row in rows}) == 1.0
    assert criterion({row.row_hash: told(None) for row in rows}) == criterion({}) == 0.0


def test_with_costs_the_criterion_is_what_mistakes_cost_and_classes_count_the_same(small: Path) -> None:
    """However many rows they have."""
    rows = rows_of(small, 13)
    first, second = (str(row.root_cause) for row in rows[:2])
    criterion = cause_criterion(rows, [(first, second, 4.0)])
    predictions = {row.row_hash: told(second if row.root_cause == first else row.root_cause) for row in rows}
    assert sum(row.root_cause == first for row in rows) == 3
    assert criterion(predictions) == pytest.approx(5 / 6)
    assert criterion({}) == 0.0


def test_the_criterion_of_rules_is_their_mean_score(small: Path) -> None:
    """A rule that is not there scores nothing."""
    examples = examples_for("rule", labelled(small, "val"), 0)
    rows = [example.dspy_labelled for example in examples]
    predictions = {
        one.dspy_row: dspy.Prediction(rule=one.rule, component=one.component) if place else dspy.Prediction()
        for place, one in enumerate(examples)
    }
    scores = [rule_metric(one, predictions[one.dspy_row]) for one in examples]
    assert scores[0] < min(scores[1:])
    assert rule_criterion(rows)(predictions) == pytest.approx(sum(scores) / len(scores))
    assert rule_criterion(rows)({}) == 0.0


def test_a_metric_that_fails_ends_the_compile_and_is_no_score() -> None:
    """With the row it failed on; what goes well goes through."""

    def metric(example: Any, prediction: Any, trace: Any = None) -> float:
        return 1 / len(prediction)

    assert guarded(metric)(dspy.Example(dspy_id="r7"), "ab") == 0.5
    with pytest.raises(Stop) as caught:
        guarded(metric)(dspy.Example(dspy_id="r7"), "")
    assert isinstance(caught.value.error, CompileError)
    assert "fails on row 'r7' (ZeroDivisionError" in str(caught.value)
