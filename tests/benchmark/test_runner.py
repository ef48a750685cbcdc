"""Contenders and baselines on the same rows: what is counted, what is refused, what is never scored."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from dspy_reflex.benchmark.results import pool
from dspy_reflex.benchmark.runner import benchmark_cause, benchmark_rule
from dspy_reflex.errors import BenchmarkError, ModelUnavailableError
from dspy_reflex.runtime.lm.model import Completion
from tests.benchmark.contest import asked, contender, knows, proposes, row, rows, says

TEST = rows(12)
TRAIN = [row(number + 100, item.root_cause, reference_rule="When x, stop.") for number, item in enumerate(rows(9))]
GOOD_RULE = "When a call fails, retry at most twice, then report it."


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    """A report apart from what the clock says."""
    return {**report, "rows": [{**line, "seconds_per_failure": 0} for line in report["rows"]]}


def test_programs_come_first_then_the_uncompiled_one_then_the_baselines() -> None:
    """Programs in the order given."""
    programs = [
        contender(knows, "plain", "uncompiled"),
        contender(knows, "second"),
        contender(lambda _: says("red"), "first"),
    ]
    report = benchmark_cause(TEST, programs, trainset=TRAIN, dataset="mine")
    assert [(line.name, line.kind) for line in report.rows] == [
        ("second", "program"), ("first", "program"), ("plain", "uncompiled"),
        ("constant", "baseline"), ("tfidf_logistic_regression", "baseline"),
    ]  # fmt: skip
    assert (report.dataset, report.n, report.units) == ("mine", 12, 12)


def test_a_row_has_every_score() -> None:
    """By hand: always red, 0.9 sure, on a third of red rows."""
    report = benchmark_cause(TEST, [contender(knows, "a"), contender(lambda _: says("red"), "b")], baselines=False)
    line = report.to_json()["rows"][1]
    assert line["accuracy"] == pytest.approx(1 / 3)
    assert line["macro_f1"] == pytest.approx((2 * 4 / 16) / 3)
    assert line["interval"][0] <= line["macro_f1"] <= line["interval"][1]
    assert line["confidence"]["brier"] == pytest.approx((0.01 + 2 * 0.81) / 3)
    assert line["confidence"]["ece"] == pytest.approx(0.9 - 1 / 3)
    assert line["per_class"][0] == {
        "label": "red", "precision": pytest.approx(1 / 3), "recall": 1.0, "f1": 0.5, "support": 4, "predicted": 12,
    }  # fmt: skip
    assert line["vs_first"]["difference"] == pytest.approx(line["macro_f1"] - 1)
    assert line["vs_first"]["interval"][1] < 0
    assert line["vs_first"]["mcnemar_p"] == pytest.approx(2 * 0.5**8)
    assert (line["n"], line["calls_per_failure"], line["seen"]) == (12, 1.0, 0)
    assert report.to_json()["rows"][0]["vs_first"] is None
    json.dumps(report.to_json(), allow_nan=False)


def test_the_hit_rate_takes_second_readers_into_account() -> None:
    """`also_acceptable` is no miss there."""
    some = [row(1, "red", also_acceptable=("blue",)), row(2, "green")]
    line = benchmark_cause(some, [contender(lambda _: says("blue"))], baselines=False).rows[0]
    assert (line.accuracy, line.hit_rate) == (0.0, 0.5)


def test_refusals_and_unparsable_answers_are_counted_apart_and_are_misses() -> None:
    """They do not leave the denominator."""

    def moody(prompt: str) -> Completion:
        if "task 1\n" in prompt:
            return Completion("no", finish="refusal")
        return Completion("I would say red") if "task 2\n" in prompt else knows(prompt)

    line = benchmark_cause(TEST, [contender(moody)], baselines=False).rows[0]
    assert (line.refusals, line.unparsable, line.n) == (1, 1, 12)
    assert line.accuracy == pytest.approx(10 / 12)


@pytest.mark.parametrize(("confidence", "brier"), [("nan", None), ("inf", None), ("7", 0.0), ("-3", 1.0)])
def test_a_confidence_that_is_no_probability_spoils_no_score(confidence: str, brier: float | None) -> None:
    """Outside [0, 1] it is clipped; what is no number is left out of calibration."""
    program = contender(lambda prompt: Completion(knows(prompt).text.replace("0.9", confidence)))
    line = benchmark_cause(TEST, [program], baselines=False).rows[0]
    assert (line.accuracy, line.confidence.brier if line.confidence else None) == (1.0, brier)


def test_an_outage_is_never_scored() -> None:
    """It ends the benchmark, and with threads what was not asked yet is not asked any more."""

    def gone(prompt: str) -> Completion:
        if "task 3\n" in prompt:
            raise ModelUnavailableError("no answer after 5 tries")
        time.sleep(0.005)
        return knows(prompt)

    for concurrency in (1, 2):
        program = contender(gone)
        with pytest.raises(ModelUnavailableError, match="no answer after 5 tries"):
            benchmark_cause(rows(300), [program], baselines=False, concurrency=concurrency)
        assert len(asked(program)) < 100


def test_threads_do_not_change_the_report() -> None:
    """Answers come back in any order and are reported in one."""
    threads: set[int] = set()

    def slow(prompt: str) -> Completion:
        threads.add(threading.get_ident())
        time.sleep(0.02 if "task 0\n" in prompt else 0.002)
        return knows(prompt) if "green" in prompt else says("blue", 0.4)

    reports = [benchmark_cause(TEST, [contender(slow)], trainset=TRAIN, concurrency=n) for n in (1, 8)]
    assert without_times(reports[0].to_json()) == without_times(reports[1].to_json())
    assert len(threads) > 2


def test_rows_that_a_program_was_made_with_are_refused_unless_marked() -> None:
    """Val rows are seen, too; nothing is asked before the refusal."""
    program = contender(knows, train=[TEST[0].row_hash], val=[TEST[1].row_hash])
    with pytest.raises(BenchmarkError, match="mine was made with 2 of these 12 rows"):
        benchmark_cause(TEST, [program], baselines=False)
    assert asked(program) == []
    assert benchmark_cause(TEST, [program], baselines=False, allow_seen=True).rows[0].seen == 2


def test_rows_that_the_baselines_learn_from_are_refused_too() -> None:
    """A baseline must not be flattered either."""
    with pytest.raises(BenchmarkError, match="the baselines' trainset was made with 1 of"):
        benchmark_cause(TEST, [], trainset=[*TRAIN, TEST[0]])
    report = benchmark_cause(TEST, [], trainset=[*TRAIN, TEST[0]], allow_seen=True)
    assert [line.seen for line in report.rows] == [1, 1]


def test_a_table_for_each_value_of_a_field() -> None:
    """Beside the pooled one; any field of the file will do."""
    some = [item.model_copy(update={"source": "a" if place < 4 else None}) for place, item in enumerate(TEST)]
    report = benchmark_cause(some, [contender(lambda _: says("red"))], baselines=False, by="source")
    tables = report.to_json()["by"]
    assert tables["field"] == "source"
    assert [(part["value"], part["n"]) for part in tables["values"]] == [("(none)", 8), ("a", 4)]
    assert tables["values"][1]["rows"][0]["accuracy"] == 0.5
    assert benchmark_cause(some, [contender(knows)], baselines=False).to_json()["by"] is None
    with pytest.raises(BenchmarkError, match="no row has a field 'colour'"):
        benchmark_cause(some, [contender(knows)], baselines=False, by="colour")


@pytest.mark.parametrize(
    ("some", "programs", "options", "said"),
    [
        ([], [contender(knows)], {"baselines": False}, "no rows to benchmark on"),
        (TEST, [], {"baselines": False}, "nothing to benchmark"),
        (TEST, [contender(knows)], {}, "no rows to learn from; name some with --trainset"),
        ([row(1, None)], [contender(knows)], {"baselines": False}, "f1 has no root cause"),
        ([row(1, "grey")], [contender(knows)], {"baselines": False}, "mine does not know grey"),
        (TEST, [contender(knows, program="rule")], {"baselines": False}, "mine is a rule program"),
        (TEST, [contender(knows), contender(knows)], {"baselines": False}, "mine was given twice"),
    ],
)
def test_what_cannot_be_compared_is_said(some: Any, programs: Any, options: Any, said: str) -> None:
    """In one sentence with the way out."""
    with pytest.raises(BenchmarkError, match=said):
        benchmark_cause(some, programs, **options)


def test_progress_is_told_after_each_answer() -> None:
    """Up to the number of all answers."""
    seen: list[tuple[int, int]] = []
    benchmark_cause(TEST, [contender(knows)], trainset=TRAIN, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 36) for done in range(1, 37)]


def test_reports_on_left_out_sources_are_pooled() -> None:
    """Answers are put together before they are scored, which is not the mean of the scores."""
    halves = [
        benchmark_cause(some, [contender(lambda _: says("red"))], trainset=TRAIN) for some in (TEST[:5], TEST[5:])
    ]
    whole = benchmark_cause(TEST, [contender(lambda _: says("red"))], trainset=TRAIN)
    assert without_times(pool(halves).to_json()) == without_times(whole.to_json())
    with pytest.raises(BenchmarkError, match="share failures"):
        pool([halves[0], halves[0]])
    with pytest.raises(BenchmarkError, match="different contenders"):
        pool([halves[0], benchmark_cause(TEST[5:], [contender(knows, "other")], baselines=False)])


def test_rules_are_scored_with_parts_and_beside_the_baselines() -> None:
    """A refusal is a rule that scores nothing."""

    def answers(prompt: str) -> Completion:
        return Completion("", finish="refusal") if "task 0\n" in prompt else proposes("TOOLS", GOOD_RULE)

    some = [item.model_copy(update={"component": "TOOLS"}) for item in TEST]
    program = contender(answers, program="rule")
    report = benchmark_rule(some, [program], trainset=TRAIN)
    line = report.to_json()["rows"][0]
    assert [other.name for other in report.rows] == ["mine", "fixed_rule_per_cause", "nearest_training_rule"]
    assert line["score"] == pytest.approx(11 / 12)
    assert line["parts"]["component"]["score"] == pytest.approx(11 / 12)
    assert line["parts"]["component"]["interval"][0] < 11 / 12 <= line["parts"]["component"]["interval"][1]
    assert "key_points" not in line["parts"]
    assert (line["refusals"], line["n"]) == (1, 12)
    assert report.to_json()["rows"][1]["vs_first"]["mcnemar_p"] is None
    json.dumps(report.to_json(), allow_nan=False)


def test_a_rule_program_is_told_the_cause_and_the_rules_that_are_there() -> None:
    """And nothing of the reference."""
    told = row(1, "green", existing_rules=("Never eat fish.",), reference_rule="SECRET", key_points=(("SECRET",),))
    program = contender(lambda _: proposes("TOOLS", GOOD_RULE), program="rule")
    benchmark_rule([told], [program], baselines=False)
    prompt = asked(program)[0]
    assert "green" in prompt
    assert "Never eat fish." in prompt
    assert "SECRET" not in prompt
