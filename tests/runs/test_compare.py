"""Two runs side by side, on the rows that both answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspy_reflex.benchmark import statistics
from dspy_reflex.runs.compare import Comparison, Cost, compare, comparison_document
from dspy_reflex.runs.folder import read_run
from dspy_reflex.runs.pages import markdown
from tests.runs.folders import CUES, DEMOS, PREDICTIONS, RULES, config, demo, prediction, write_run

COLOURS = ("red", "green", "blue")
GOLD = [COLOURS[number % 3] for number in range(30)]
ALL_RIGHT = [prediction(number, gold, gold) for number, gold in enumerate(GOLD)]
ALWAYS_RED = [prediction(number, gold, "red") for number, gold in enumerate(GOLD)]


def of(folder: Path) -> Comparison:
    """The comparison of the runs `a` and `b`."""
    return compare(read_run(folder / "a"), read_run(folder / "b"))


def test_scores_are_paired_on_the_rows_that_both_answered(tmp_path: Path) -> None:
    """As `statistics` has it; second minus first."""
    write_run(tmp_path / "a", predictions=ALWAYS_RED)
    write_run(tmp_path / "b", predictions=[*ALL_RIGHT[3:], prediction(99, "red", "red")])
    paired = of(tmp_path).paired
    assert paired is not None
    told: list[str | None] = ["red"] * 27
    assert (paired.n, paired.units, paired.relabelled) == (27, 27, 0)
    assert paired.difference == pytest.approx(1 - statistics.macro_f1(GOLD[3:], told))
    assert paired.interval[0] > 0
    assert (paired.only_first_right, paired.only_second_right) == (0, 18)
    assert paired.mcnemar_p == pytest.approx(2 * 0.5**18)


def test_a_run_against_itself_makes_no_difference(tmp_path: Path) -> None:
    """None in options, scores, instruction or demos; each cost once the other."""
    write_run(tmp_path / "a")
    write_run(tmp_path / "b")
    found = of(tmp_path)
    assert found.paired is not None
    assert (found.options, found.paired.difference, found.paired.mcnemar_p) == ({}, 0, 1)
    assert (found.demos_only_first, found.demos_only_second) == ((), ())
    assert found.instruction is not None
    assert found.instruction.lines == ()
    assert {cost.ratio for cost in found.cost.values()} == {1.0}
    assert "The instruction is the same." in markdown.render(comparison_document(found))


def test_rows_of_one_unit_are_resampled_together(tmp_path: Path) -> None:
    """Ten units of three rows are less evidence than thirty rows."""
    for name, rows in (("a", ALWAYS_RED), ("b", ALL_RIGHT)):
        write_run(tmp_path / name, predictions=[{**row, "unit": f"u{i % 10}"} for i, row in enumerate(rows)])
    paired = of(tmp_path).paired
    assert paired is not None
    assert (paired.n, paired.units) == (30, 10)


def test_rows_whose_labels_differ_are_left_out_and_counted(tmp_path: Path) -> None:
    """The data was relabelled between the two."""
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", predictions=[{**PREDICTIONS[0], "gold": "blue"}, *PREDICTIONS[1:]])
    found = of(tmp_path)
    assert found.paired is not None
    assert (found.paired.n, found.paired.relabelled) == (7, 1)
    assert "1 rows were left out" in markdown.render(comparison_document(found))


def test_without_common_rows_nothing_is_paired(tmp_path: Path) -> None:
    """And that is said."""
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", predictions=[prediction(50, "red", "red")])
    found = of(tmp_path)
    assert found.paired is None
    assert "no predictions on the same rows" in markdown.render(comparison_document(found))


def test_rules_are_paired_by_their_scores(tmp_path: Path) -> None:
    """There is nothing to be right about, so no McNemar."""
    for name, more in (("a", 0.0), ("b", 0.25)):
        rules = [{"id": f"v{n}", "gold": "red", "score": n / 20 + more} for n in range(12)]
        write_run(tmp_path / name, predictions=rules)
    found = of(tmp_path)
    assert found.paired is not None
    assert (found.paired.metric, found.paired.n, found.paired.mcnemar_p) == ("rule score", 12, None)
    assert (found.paired.difference, found.paired.interval) == (pytest.approx(0.25), pytest.approx((0.25, 0.25)))
    text = markdown.render(comparison_document(found))
    assert "rule score 0.525 against 0.275" in text
    assert "McNemar" not in text


def test_a_rule_is_not_held_against_a_root_cause(tmp_path: Path) -> None:
    """Even on the same row."""
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", predictions=[{"id": "v0", "gold": "red", "score": 0.5}])
    assert of(tmp_path).paired is None


def test_options_demos_instruction_and_cost_that_differ_are_named(tmp_path: Path) -> None:
    """Nested options by their dotted names, demos by their ids."""
    write_run(tmp_path / "a", instructions=RULES)
    asked = config(seed=1, settings={"max_demos": 3, "trials": 9, "breadth": 2})
    ledger = {"models": {"fake/1": {"input_tokens": 10_000, "output_tokens": 200}}}
    write_run(
        tmp_path / "b",
        asked=asked,
        demos=[demo(0, "red"), DEMOS[1], demo(7, "blue")],
        instructions=CUES,
        calls=100,
        ledger=ledger,
    )
    found = of(tmp_path)
    assert found.options == {"seed": ("0", "1"), "settings.trials": ("3", "9"), "settings.breadth": (None, "2")}
    assert [each.id for each in found.demos_only_first] == ["t2"]
    assert [(each.id, each.label) for each in found.demos_only_second] == [("t7", "blue")]
    assert (found.cost["calls"], found.cost["tokens"]) == (Cost(40, 100, 2.5), Cost(5100, 10_200, 2.0))
    assert found.cost["usd"].ratio is None
    assert found.instruction is not None
    assert "+- red: fire +0.9" in found.instruction.lines
    assert json.loads(json.dumps(found.to_json()))["options"]["seed"] == ["0", "1"]


def test_runs_without_programs_can_be_compared(tmp_path: Path) -> None:
    """There is only less to say."""
    for name in ("a", "b"):
        write_run(tmp_path / name)
        (tmp_path / name / "program.json").unlink()
    found = of(tmp_path)
    assert (found.instruction, found.demos_only_first) == (None, ())
    assert "## Scores" in markdown.render(comparison_document(found))
