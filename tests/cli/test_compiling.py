"""`dspy-reflex compile`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.optimize import compile as compiling
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.optimize.optimizers.base import flag
from dspy_reflex.runtime.artifact import read
from tests.cli.runner import Reflex, files_below, process
from tests.optimize.compiles import quick, take, ten_rows, write_rows
from tests.optimize.thinking import STRONG, WEAK, every, learns
from tests.runtime.lm.loopback import KEY, error, refusal

QUICK = ("--optimizer", "bootstrap_few_shot", "--max-demos", "6")
SEARCH = ("--optimizer", "bootstrap_random_search", "--max-demos", "6", "--trials", "3")
OURS = re.compile(
    r"warning: \S.*|\d+ rows(, no val| to learn from, \d+ to choose on)|run in \S+; if it is interrupted, .* --resume \S+"
    r"|candidate \d+: [\d.]+, (scored|dropped after \d+ of \d+ rows)(, best [\d.]+)?; \d+ calls so far"
)
"""Every line that may be on stderr while all goes well."""


@pytest.fixture(autouse=True, scope="module")
def without_pictures() -> Iterator[None]:
    """Drawing what a run came to takes longer than most runs here; those in a process of their own do it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "write_run_report", lambda _: None)
        yield


def test_stdout_is_one_json_document(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Artefact, scores and calls; the artefact is there and is the library's."""
    done = reflex("compile", "root_cause", "--dataset", small, *QUICK, "--json")
    assert done.code == 0
    found = done.json
    assert {"artifact", "scores", "calls"} <= set(found)
    assert read(tmp_path / found["artifact"]).name == found["program"]
    assert found["scores"]["interval"][0] <= found["scores"]["value"] <= found["scores"]["interval"][1]
    assert found["scores"]["uncompiled"]["n"] == found["scores"]["n"] == 18
    for part in ("phases", "models"):
        assert found["calls"] == sum(counts["calls"] for counts in found["ledger"][part].values()) > 0
    assert (tmp_path / found["run"] / "result.json").exists()


@pytest.mark.parametrize(("optimizer", "threads"), [("bootstrap_random_search", 1), ("miprov2", 4)])
def test_nothing_of_dspy_is_printed(optimizer: str, threads: int, small: Path, tmp_path: Path) -> None:
    """In a real process: stdout is JSON alone, stderr has our lines alone."""
    done = process(
        tmp_path, "compile", "root_cause", "--dataset", small, "--optimizer", optimizer, "--trials", 3, "--max-demos", 6,
        "--threads", threads, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["calls"] > 0
    assert [line for line in done.err.splitlines() if not OURS.fullmatch(line)] == []
    assert "candidate 1: " in done.err
    assert (tmp_path / done.json["run"] / "report.md").exists()


def test_nothing_of_dspy_is_printed_when_answers_are_unusable(small: Path, tmp_path: Path, serve: Any) -> None:
    """DSPy logs every one of them as an error."""
    serve(every(3, refusal(), learns))
    done = process(
        tmp_path, "compile", "root_cause", "--dataset", small, "--optimizer", "bootstrap_random_search", "--trials", 2,
        "--threads", 2, "--lm", WEAK, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["scores"]["value"] < 1
    assert [line for line in done.err.splitlines() if not OURS.fullmatch(line)] == []


def test_people_are_told_what_it_brought(small: Path, reflex: Reflex) -> None:
    """Before, after, and where it is."""
    done = reflex("compile", "rule", "--dataset", small, *QUICK)
    assert done.code == 0
    assert re.search(r"compiled rule@[0-9a-f]{12} with bootstrap_few_shot in \d+ calls", done.out)
    assert re.search(r"uncompiled +val \(chosen on it\) rule score 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\], n=18", done.out)
    assert "programs/rule/" in done.out
    assert "30 rows to learn from, 18 to choose on" in done.err


def test_the_command_and_the_library_make_the_same_bytes(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """And the command again, elsewhere."""
    made = [
        Path(reflex("compile", "root_cause", "--dataset", small, *QUICK, "--out", tmp_path / name, "--run",
                    tmp_path / f"run-{name}", "--json").json["artifact"]).read_bytes()
        for name in ("a", "b")
    ]  # fmt: skip
    assert made[0] == made[1] == quick(tmp_path, small).path.read_bytes()


def test_ten_rows_in_ones_own_taxonomy(reflex: Reflex, tmp_path: Path) -> None:
    """Cross-validated, with an interval."""
    taxonomy, rows = ten_rows(tmp_path)
    done = reflex("compile", "root_cause", "--dataset", rows, "--taxonomy", taxonomy, *QUICK, "--json")
    assert done.code == 0
    assert (done.json["scores"]["on"], done.json["scores"]["n"]) == ("5-fold cross-validation", 10)
    assert read(Path(done.json["artifact"])).labels == ("unripe", "rotten", "bruised")


def test_a_source_can_be_left_out_of_two_sets(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Two `--dataset` are pooled; one of them has no sources at all."""
    rows = [{**row, "source": f"s{number % 2}", "group": f"g{number // 4}"} for number, row in enumerate(take(8, 10))]
    more = write_rows(tmp_path / "real.jsonl", [{**row, "group": row["id"]} for row in rows])
    done = reflex(
        "compile", "root_cause", "--dataset", small, "--dataset", more, "--leave-out", "source=s1", *QUICK, "--json"
    )
    assert done.code == 0, done.err
    data = read(Path(done.json["artifact"])).data["data"]
    assert (data["name"], len(data["train"])) == ("small+real", 36)


def test_absent_classes_and_leaks_are_warnings_on_stderr(reflex: Reflex, tmp_path: Path) -> None:
    """With file and line."""
    rows = [row for row in take(0, 9) if row["root_cause"] != "context_loss"]
    rows[3] = {**rows[3], "actual_outcome": "The logger wrote: context_loss"}
    done = reflex("compile", "root_cause", "--dataset", write_rows(tmp_path / "a.jsonl", rows), *QUICK, "--json")
    assert done.code == 0
    assert "warning: a: no row is context_loss; the label set stays whole" in done.err
    assert f"warning: {tmp_path / 'a.jsonl'}:4: the text contains 'context_loss'" in done.err
    assert len(done.json["warnings"]) >= 2


def test_a_compile_that_changed_nothing_is_exit_code_2(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """One sentence; the library stays as it was."""
    done = reflex("compile", "root_cause", "--dataset", small, "--trials", 1, "--candidates", 2, "--json")
    assert "miprov2 changed nothing" in done.refusal
    assert not (tmp_path / "programs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--optimizer", "bootstrap_few_shot", "--max-demos", "0"], "--max-demos: 0 is not between 1 and 200"),
        (["--optimizer", "bootstrap_random_search", "--trials", "0"], "--trials: 0 is not between 1 and 1000"),
        (["--optimizer", "labeled_few_shot", "--trials", "3"], "labeled_few_shot has no option --trials; it takes"),
        (["--optimizer", "knn_few_shot", "--candidates", "3"], "knn_few_shot has no option --candidates"),
        (["--max-calls", "0"], "--max-calls: 0 is no limit; give a number above 0"),
        (["--max-time", "-1"], "--max-time: -1.0 is no limit"),
        (["--max-usd", "1", "--lm", "openai/nobody-knows"], "--max-usd: the price of openai/nobody-knows is not known"),
        (["--cost", "tool_failure:bad_luck=3"], "--cost: there is no root cause 'bad_luck'; there are"),
        (["--cost", "tool_failure:overconfidence=0"], "--cost tool_failure:overconfidence=0: give two different"),
        (["--cost", "tool_failure=3x"], "give GOLD:TOLD=COST, such as"),
        (["--target-precision", "1.5"], "1.5 is not in the range"),
        (
            ["--resume", "nowhere", "--seed", "3"],
            "--resume takes everything but --out and limits from the run; leave out",
        ),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_options_that_cannot_be_used_are_said_before_anything_is_written(
    dry: tuple[str, ...], arguments: list[str], said: str, small: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """By the name that they were given by; a dry run says the same."""
    assert said in reflex("compile", "root_cause", "--dataset", small, *arguments, *dry).refusal
    assert not list(tmp_path.iterdir())


def test_an_outage_is_one_sentence_and_nothing_is_written(
    small: Path, reflex: Reflex, tmp_path: Path, serve: Any
) -> None:
    """The older program of the library is still the current one."""
    reflex("compile", "root_cause", "--dataset", small, *QUICK)
    before = files_below(tmp_path / "programs")
    serve(lambda _: error(529, retry_after="0.01"))
    done = reflex("compile", "root_cause", "--dataset", small, *QUICK, "--lm", WEAK)
    assert WEAK in done.refusal
    assert done.err.count("\n") == 3  # the run, the rows, and the sentence
    assert files_below(tmp_path / "programs") == before


def test_a_key_that_a_server_echoes_is_not_printed(small: Path, reflex: Reflex, serve: Any) -> None:
    """And what to do about a wrong key fits into one line."""
    serve(lambda _: error(401, f"bad key {KEY}"))
    done = reflex("compile", "root_cause", "--dataset", small, *QUICK, "--lm", WEAK)
    assert KEY not in done.err
    assert done.refusal
    assert done.err.count("\n") == 3


def test_teacher_and_prompt_model_are_asked_at_their_own_addresses(small: Path, reflex: Reflex, serve: Any) -> None:
    """Counted by model."""
    weak, strong = serve(learns), serve(learns, STRONG)
    done = reflex(
        "compile", "root_cause", "--dataset", small, "--optimizer", "miprov2", "--trials", 4, "--lm", WEAK,
        "--teacher-lm", STRONG, "--prompt-lm", STRONG, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    calls = {name: counts["calls"] for name, counts in done.json["ledger"]["models"].items()}
    assert calls == {STRONG: len(strong.requests), WEAK: len(weak.requests)}


def broken(tmp_path: Path, name: str) -> Path:
    """A data set with one thing wrong."""
    rows = [json.dumps(row) for row in take(0, 1)]
    match name:
        case "not JSON":
            rows[2] = rows[2][:-5]
        case "unknown label":
            rows[2] = json.dumps({**take(0, 1)[2], "root_cause": "bad_luck"})
        case "duplicate id":
            rows.append(rows[2])
        case _:
            rows = []
    path = tmp_path / "broken.jsonl"
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("not JSON", ":3: ", "not JSON"),
        ("unknown label", ":3: ", "root_cause 'bad_luck' is not in the taxonomy"),
        ("duplicate id", ":7: ", "is already at"),
        ("empty", ": ", "the file is empty"),
    ],
)
@pytest.mark.parametrize("command", ["compile", "benchmark"])
def test_rows_that_cannot_be_used_are_named_with_file_and_line(
    command: str, name: str, line: str, said: str, reflex: Reflex, cause: Path, tmp_path: Path
) -> None:
    """Nothing is written, not even a run folder."""
    path = broken(tmp_path, name)
    more = ("--program", cause) if command == "benchmark" else ()
    refusal = reflex(command, "root_cause", "--dataset", path, *more).refusal
    assert f"{path}{line}" in refusal
    assert said in refusal
    assert list(files_below(tmp_path)) == ["broken.jsonl"]


def test_an_empty_split_is_named(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Train, val or test alike."""
    folder = tmp_path / "data"
    write_rows(folder / "train.jsonl", take(0, 2))
    write_rows(folder / "val.jsonl", [])
    assert f"{folder / 'val.jsonl'}: the file is empty" in reflex("compile", "root_cause", "--dataset", folder).refusal


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dataset", "nope.jsonl"], "nope.jsonl: no such file"),
        (["--taxonomy", "nope.toml"], "no taxonomy 'nope.toml': name one of"),
        (["--lm", "openai/gpt-4o"], "needs a key: set OPENAI_API_KEY"),
        (["--lm", "gpt-4o"], "'gpt-4o' is not known"),
        (["--teacher-lm", "hosted_vllm/m"], "set HOSTED_VLLM_API_BASE"),
        (["--prompt-lm", "bedrock/m"], "'bedrock/m' is not known"),
        (["--leave-out", "source=x"], "source=x"),
    ],
)
def test_what_cannot_be_found_is_named(
    arguments: list[str], said: str, small: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """One sentence, exit code 2, nothing half-written."""
    if "--dataset" not in arguments:
        arguments = [*arguments, "--dataset", str(small)]
    assert said in reflex("compile", "root_cause", *arguments).refusal
    assert not list(tmp_path.iterdir())


def test_an_out_folder_that_is_a_file_is_one_sentence(small: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Named, and left alone."""
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    done = reflex("compile", "root_cause", "--dataset", small, *QUICK, "--out", "taken")
    assert "taken" in done.refusal
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_help_names_every_optimizer_and_each_of_its_options(optimizer: str, reflex: Reflex) -> None:
    """With what it learns, and with whose default is what."""
    text = " ".join(reflex("compile", "--help").out.split())
    one = OPTIMIZERS[optimizer]
    assert f"{optimizer} {one.learns}; pick it when {one.pick_when}" in text
    for each in fields(one.options):
        assert flag(each.name) in text
        assert each.metadata["text"].capitalize() in text


def test_a_dry_run_says_what_it_would_cost_and_writes_nothing(
    small: Path, reflex: Reflex, tmp_path: Path, serve: Any
) -> None:
    """For people and as JSON; the real one stays below."""
    server = serve(learns)
    command = ("compile", "root_cause", "--dataset", small, *SEARCH, "--lm", WEAK)
    done, told = reflex(*command, "--dry-run"), reflex(*command, "--dry-run", "--json").json
    assert done.code == 0
    assert done.out.startswith(f"at most {told['calls']} calls, about {told['tokens']:,} tokens, {told['usd']:.2f} USD")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["bootstrap", "evaluate", "measure"]
    assert (server.requests, list(tmp_path.iterdir())) == ([], [])
    assert reflex(*command, "--json").json["calls"] <= told["calls"]


def test_a_spent_budget_is_exit_code_1_with_a_program_and_2_without(
    small: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """And the run goes on from both to the program of a run without a limit."""
    command = ("compile", "root_cause", "--dataset", small, *SEARCH)
    whole = reflex(*command, "--out", "whole", "--json").json
    early = reflex(*command, "--run", "early", "--max-calls", 30)
    assert "the budget of 30 calls (--max-calls) is spent; raise it to go on" in early.refusal
    late = reflex(*command, "--run", "late", "--max-calls", 80)
    assert late.code == 1
    assert ", partial: the budget of 80 calls (--max-calls) is spent" in late.out
    assert "it is not made current" in late.err
    assert not (tmp_path / "programs" / "root_cause" / "current.json").exists()
    for run in ("early", "late"):
        done = reflex("compile", "--resume", run, "--max-calls", 999, "--json")
        assert done.code == 0
        assert (done.json["program"], done.json["calls"]) == (whole["program"], whole["calls"])
        assert Path(done.json["artifact"]).read_bytes() == Path(whole["artifact"]).read_bytes()


def test_a_run_that_goes_on_takes_no_other_options(small: Path, reflex: Reflex) -> None:
    """Each is named as it was given; limits and the library may be others."""
    assert reflex("compile", "root_cause", "--dataset", small, *QUICK, "--run", "mine").code == 0
    for given in (("root_cause",), ("--dataset", small), ("--seed", 0), ("--threads", 2), ("--max-demos", 3),
                  ("--cost", "tool_failure:overconfidence=3"), ("--dry-run",), ("--run", "other"), ("--lm", "offline")):  # fmt: skip
        name = "program" if given == ("root_cause",) else given[0]
        assert f"leave out {name}" in reflex("compile", "--resume", "mine", *given).refusal
    assert reflex("compile", "--resume", "mine", "--max-calls", 9, "--out", "elsewhere").code == 0
    assert "no run here to go on with" in reflex("compile", "--resume", "nowhere").refusal


def test_without_a_program_to_compile_it_is_asked_for(reflex: Reflex) -> None:
    """Unless a run goes on."""
    assert "say what to compile: root_cause or rule" in reflex("compile").refusal


def test_costs_are_told_and_kept(small: Path, reflex: Reflex) -> None:
    """In the artefact and in the run."""
    costs = ("--cost", "tool_failure:overconfidence=3", "--cost", "context_loss:tool_failure=0.5")
    done = reflex("compile", "root_cause", "--dataset", small, *SEARCH, *costs, "--run", "mine", "--json")
    kept = [["tool_failure", "overconfidence", 3.0], ["context_loss", "tool_failure", 0.5]]
    assert read(Path(done.json["artifact"])).data["optimizer"]["costs"] == kept
    assert json.loads(Path("mine/config.json").read_text(encoding="utf-8"))["costs"] == kept
