"""`dspy-reflex benchmark`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.evalset.load import SINGLE_SPLIT
from dspy_reflex.runtime.artifact import read
from tests.cli.runner import Reflex, files_below
from tests.optimize.compiles import quick, take, ten_rows, write_rows
from tests.optimize.thinking import WEAK, every
from tests.runtime.lm.loopback import answer, error, refusal


@pytest.fixture(scope="session")
def other(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second root-cause program."""
    return quick(tmp_path_factory.mktemp("other"), small, optimizer="labeled_few_shot", seed=5).path


def test_stdout_is_one_json_document(small: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Data set, n, and a row for each contender; nothing is written."""
    done = reflex("benchmark", "root_cause", "--dataset", small, "--program", cause, "--json")
    assert done.code == 0
    found = done.json
    assert (found["dataset"], found["n"]) == ("small/test", 24)
    (row,) = found["rows"]
    assert (row["name"], row["kind"]) == (read(cause).name, "program")
    assert 0 <= row["accuracy"] <= 1
    assert 0 <= row["macro_f1"] <= 1
    assert not files_below(tmp_path)


def test_programs_come_first_in_the_order_given(small: Path, cause: Path, other: Path, reflex: Reflex) -> None:
    """Whichever is better; then the uncompiled program, then baselines."""
    for files in ([cause, other], [other, cause]):
        options = [part for path in files for part in ("--program", path)]
        rows = reflex("benchmark", "root_cause", "--dataset", small, *options, "--baselines", "--json").json["rows"]
        assert [row["name"] for row in rows[:3]] == [*(read(path).name for path in files), "uncompiled"]
        kinds = [row["kind"] for row in rows]
        assert kinds == ["program", "program", "uncompiled", *["baseline"] * (len(rows) - 3)]
        assert len(rows) >= 6
        for row in rows:
            assert {"accuracy", "macro_f1"} <= set(row)


def test_rows_of_the_rule_program_have_a_score_and_its_parts(small: Path, rule: Path, reflex: Reflex) -> None:
    """With intervals, beside baselines."""
    done = reflex("benchmark", "rule", "--dataset", small, "--program", rule, "--baselines", "--json")
    assert done.code == 0, done.err
    for row in done.json["rows"]:
        assert 0 <= row["score"] <= 1
        assert row["parts"]
    assert [row["kind"] for row in done.json["rows"]][:2] == ["program", "uncompiled"]


def test_rules_can_be_scored_for_the_causes_that_a_program_names(
    small: Path, cause: Path, rule: Path, reflex: Reflex
) -> None:
    """The data set says whose they are and how many are right; a program for causes takes none."""
    options = ("--dataset", small, "--diagnosed-by", cause)
    done = reflex("benchmark", "rule", *options, "--program", rule, "--json")
    assert done.code == 0, done.err
    labelled = reflex("benchmark", "root_cause", "--dataset", small, "--program", cause, "--json").json
    right = round(labelled["rows"][0]["accuracy"] * labelled["n"])
    assert done.json["dataset"] == f"small/test, causes by {read(cause).name} ({right} of {labelled['n']} right)"
    assert "--diagnosed-by is for rules" in reflex("benchmark", "root_cause", *options).refusal


@pytest.mark.parametrize("split", ["train", "val"])
def test_rows_that_a_program_was_made_with_are_refused(split: str, small: Path, cause: Path, reflex: Reflex) -> None:
    """Unless that is wanted; then the score is marked."""
    options = ("--dataset", small, "--split", split, "--program", cause)
    assert "--allow-seen" in reflex("benchmark", "root_cause", *options).refusal
    done = reflex("benchmark", "root_cause", *options, "--allow-seen", "--json")
    assert done.code == 0
    assert done.json["rows"][0]["seen"] == done.json["n"]
    assert "saw" in reflex("benchmark", "root_cause", *options, "--allow-seen").out


def test_one_seen_row_under_another_id_is_enough(small: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Rows are known by their text."""
    path = write_rows(tmp_path / "mixed.jsonl", [*take(8, 10), {**take(0, 1)[0], "id": "new"}])
    said = reflex("benchmark", "root_cause", "--dataset", path, "--program", cause).refusal
    assert "1 of these 13 rows" in said
    assert f"{path}:13" in said


def test_baselines_without_their_rows_are_refused(small: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """The rows that the program learnt from are not in the file tested; `--trainset` names them."""
    path = write_rows(tmp_path / "elsewhere" / "test.jsonl", take(8, 12))
    rows = [{**row, "task": f"{row['task']} Again."} for row in take(0, 5)]
    changed = quick(tmp_path, write_rows(tmp_path / "gone" / "train.jsonl", rows).parent).path
    options = ("benchmark", "root_cause", "--dataset", path, "--program", changed, "--baselines", "--json")
    (tmp_path / "gone" / "train.jsonl").unlink()
    assert "--trainset" in reflex(*options).refusal
    named = reflex(*options, "--trainset", small)
    assert named.code == 0, named.err
    assert [row["kind"] for row in named.json["rows"]].count("baseline") >= 3


def test_the_baselines_trainset_must_not_hold_test_rows(small: Path, cause: Path, reflex: Reflex) -> None:
    """It would flatter them, and the comparison would be none."""
    refused = reflex(
        "benchmark", "root_cause", "--dataset", small, "--program", cause, "--baselines", "--trainset",
        small / "test.jsonl",
    )  # fmt: skip
    assert "24 of these 24 rows" in refused.refusal


def test_a_table_for_each_value_of_a_field(small: Path, cause: Path, reflex: Reflex) -> None:
    """The parts add up to the whole; a field that no row has is refused."""
    options = ("benchmark", "root_cause", "--dataset", small, "--program", cause)
    found = reflex(*options, "--by", "severity", "--json").json
    assert found["by"]["field"] == "severity"
    assert sum(table["n"] for table in found["by"]["values"]) == found["n"]
    assert all(table["rows"][0]["name"] == read(cause).name for table in found["by"]["values"])
    assert "no row has a field 'mood'" in reflex(*options, "--by", "mood").refusal


def test_a_report_is_a_text_and_its_pictures(small: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Markdown that says what stdout says, and PNG files."""
    done = reflex("benchmark", "root_cause", "--dataset", small, "--program", cause, "--report", tmp_path / "report")
    assert done.code == 0
    written = files_below(tmp_path / "report")
    assert sorted(written) == ["confusion.png", "reliability.png", "report.md"]
    assert written["confusion.png"].startswith(b"\x89PNG")
    assert "macro-F1" in written["report.md"].decode()
    assert "macro-F1" in done.out


def test_a_single_file_is_used_whole_and_two_are_pooled(cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """`--split` means nothing to a file."""
    files = [write_rows(tmp_path / f"{name}.jsonl", take(start, start + 2)) for name, start in (("a", 8), ("b", 10))]
    one = reflex("benchmark", "root_cause", "--dataset", files[0], "--split", "val", "--program", cause, "--json").json
    both = reflex("benchmark", "root_cause", "--dataset", files[0], "--dataset", files[1], "--program", cause, "--json")
    assert (one["dataset"], one["n"]) == ("a", 12)
    assert (both.json["dataset"], both.json["n"]) == ("a+b", 24)
    assert SINGLE_SPLIT == "all"


def test_a_source_can_be_left_out(cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """And the rows that share a group with it."""
    rows = [
        {**row, "source": f"s{n % 2}", "group": f"g{n // 2}" if n < 4 else f"g{n}"} for n, row in enumerate(take(8, 10))
    ]
    path = write_rows(tmp_path / "a.jsonl", rows)
    done = reflex(
        "benchmark", "root_cause", "--dataset", path, "--program", cause, "--leave-out", "source=s0", "--json"
    )
    assert done.json["n"] == 4


def test_concurrency_changes_nothing(small: Path, cause: Path, reflex: Reflex) -> None:
    """But the seconds."""
    options = ("benchmark", "root_cause", "--dataset", small, "--program", cause, "--json")
    one, eight = (reflex(*options, "--concurrency", n).json["rows"][0] for n in (1, 8))
    timeless = [{name: value for name, value in row.items() if "second" not in name} for row in (one, eight)]
    assert timeless[0] == timeless[1]


def test_ones_own_taxonomy_is_taken_from_the_program(reflex: Reflex, tmp_path: Path) -> None:
    """A data set in another label set is refused with its lines."""
    taxonomy, rows = ten_rows(tmp_path)
    program = quick(tmp_path, rows, taxonomy=str(taxonomy), max_demos=4).path
    unseen = write_rows(
        tmp_path / "unseen.jsonl",
        [{"task": "Deliver.", "actual_outcome": f"The melons, {cause}.", "root_cause": cause} for cause in
         ("unripe", "rotten", "bruised")],
    )  # fmt: skip
    assert reflex("benchmark", "root_cause", "--dataset", unseen, "--program", program, "--json").json["n"] == 3
    foreign = write_rows(tmp_path / "six.jsonl", take(8, 9))
    assert "is not in the taxonomy" in reflex("benchmark", "root_cause", "--dataset", foreign, "--program", program).err


def test_misses_of_a_real_model_are_counted_apart(small: Path, cause: Path, reflex: Reflex, serve: Any) -> None:
    """Refusals and unparsable answers are misses of two names."""
    serve(every(4, refusal(), every(3, answer("Hm."))))
    done = reflex("benchmark", "root_cause", "--dataset", small, "--program", cause, "--lm", WEAK, "--json")
    (row,) = done.json["rows"]
    assert (row["refusals"], row["unparsable"]) == (6, 6)
    assert row["accuracy"] <= 0.5


def test_an_outage_is_never_scored(small: Path, cause: Path, reflex: Reflex, serve: Any, tmp_path: Path) -> None:
    """No table, no report."""
    serve(every(9, error(400, "no")))
    done = reflex(
        "benchmark", "root_cause", "--dataset", small, "--program", cause, "--lm", WEAK, "--report", tmp_path / "report"
    )
    assert WEAK in done.refusal
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--split", "exam"], "there is no split 'exam'; it has test, train, val"),
        (["--program", "nope.json"], "nope.json: no such program file"),
        (["--lm", "openai/gpt-4o"], "set OPENAI_API_KEY"),
        (["--dataset", "nope"], "nope: no such file"),
        (["--trainset", "nope", "--baselines"], "nope: no such file"),
    ],
)
def test_what_cannot_be_found_is_named(
    arguments: list[str], said: str, small: Path, cause: Path, reflex: Reflex
) -> None:
    """One sentence, exit code 2."""
    for name, value in (("--dataset", small), ("--program", cause)):
        if name not in arguments:
            arguments = [*arguments, name, str(value)]
    assert said in reflex("benchmark", "root_cause", *arguments).refusal


def test_a_program_of_the_other_kind_is_refused(small: Path, cause: Path, rule: Path, reflex: Reflex) -> None:
    """Both ways, and the same program twice."""
    assert "is a rule program" in reflex("benchmark", "root_cause", "--dataset", small, "--program", rule).refusal
    assert "is a root_cause program" in reflex("benchmark", "rule", "--dataset", small, "--program", cause).refusal
    twice = ("--program", cause, "--program", cause)
    assert "given twice" in reflex("benchmark", "root_cause", "--dataset", small, *twice).refusal


def test_scores_hold_no_failure_text(small: Path, cause: Path, reflex: Reflex) -> None:
    """A report may be shown to people who may not see the failures."""
    out = reflex("benchmark", "root_cause", "--dataset", small, "--program", cause, "--json").out
    tasks = [json.loads(line)["task"] for line in (small / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    assert not [task for task in tasks if task[:40] in out]
