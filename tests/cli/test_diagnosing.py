"""`dspy-reflex diagnose`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.runtime.artifact import digest_of, dumps, read, seal
from tests.cli.runner import Reflex, files_below, process
from tests.optimize.compiles import take, write_rows
from tests.optimize.thinking import WEAK, every, wise
from tests.runtime.lm.loopback import KEY, answer, error, refusal

N = 24


def test_a_table_and_a_distribution(failures: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """For people: each failure, who said so, and how the causes are spread; nothing is written."""
    done = reflex("diagnose", failures, "--program", cause)
    assert (done.code, done.err) == (0, "")
    for row in take(8, 12):
        assert row["id"] in done.out
    assert f"by {read(cause).name} on offline/1; {read(cause).score}" in " ".join(done.out.split())
    assert "%)" in done.out
    assert not files_below(tmp_path)


def test_stdout_is_one_json_document(failures: Path, cause: Path, reflex: Reflex) -> None:
    """A diagnosis for each failure, in order, and what it cost."""
    done = reflex("diagnose", failures, "--program", cause, "--json")
    found = done.json
    diagnoses = [Diagnosis.model_validate(one) for one in found["diagnoses"]]
    assert [one.failure_id for one in diagnoses] == [row["id"] for row in take(8, 12)]
    assert {one.program for one in diagnoses} == {read(cause).name}
    assert (found["left"], found["stopped"], found["calls"], found["cost_usd"]) == (0, "", N, 0)
    assert found["input_tokens"] > N
    assert all(one.score.startswith("val (chosen on it) macro-F1") for one in diagnoses)


def test_standard_input_and_concurrency_change_nothing(failures: Path, cause: Path, reflex: Reflex) -> None:
    """The same bytes."""
    text = failures.read_text(encoding="utf-8")
    one = reflex("diagnose", failures, "--program", cause, "--json").out
    assert reflex("diagnose", "-", "--program", cause, "--json", stdin=text).out == one
    assert reflex("diagnose", failures, "--program", cause, "--json", "--concurrency", 8).out == one


def test_it_is_the_same_in_a_fresh_process(failures: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Through a real pipe, with other hashes."""
    text = failures.read_text(encoding="utf-8")
    done = process(tmp_path, "diagnose", "-", "--program", cause, "--json", stdin=text, PYTHONHASHSEED="99")
    assert (done.code, done.err) == (0, "")
    assert done.out == reflex("diagnose", failures, "--program", cause, "--json").out


def test_the_current_program_of_the_folder_is_the_default(
    failures: Path, cause: Path, reflex: Reflex, in_empty_folder: Path
) -> None:
    """`./programs` comes before the user's folder and the package."""
    folder = in_empty_folder / "programs" / "root_cause"
    folder.mkdir(parents=True)
    artifact = read(cause)
    (folder / cause.name).write_bytes(cause.read_bytes())
    (folder / "current.json").write_text(json.dumps({"offline/1": artifact.version}), encoding="utf-8")
    found = reflex("diagnose", failures, "--json").json["diagnoses"]
    assert {one["program"] for one in found} == {artifact.name}


def test_a_budget_stops_it_and_what_is_done_is_kept(
    failures: Path, cause: Path, reflex: Reflex, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is 11 tokens in and 7 out; at a dollar a token in, the fourth call would be past 30 dollars."""
    prices = tmp_path / "prices.toml"
    prices.write_text(f'[usd_per_million_tokens]\n"{WEAK}" = {{ input = 1e6, output = 0 }}\n', encoding="utf-8")
    monkeypatch.setenv("REFLEX_PRICES", str(prices))
    server = serve(wise)
    done = reflex("diagnose", failures, "--program", cause, "--lm", WEAK, "--max-usd", 30, "--json")
    assert done.code == 1
    assert (len(done.json["diagnoses"]), done.json["left"], done.json["cost_usd"]) == (3, N - 3, 33)
    assert len(server.requests) == 3
    assert "the budget of 30.0 USD is spent" in done.json["stopped"]
    assert f"stopped: {done.json['stopped']} ({N - 3} left)" in done.err


def test_a_budget_without_a_price_is_refused(failures: Path, cause: Path, reflex: Reflex, serve: Any) -> None:
    """Before anything is asked."""
    server = serve(wise, "openai/our-own")
    done = reflex("diagnose", failures, "--program", cause, "--lm", "openai/our-own", "--max-usd", 1)
    assert "REFLEX_PRICES" in done.refusal
    assert server.requests == []


def test_a_budget_that_is_enough_stops_nothing(failures: Path, cause: Path, reflex: Reflex, serve: Any) -> None:
    """And the cost is told."""
    serve(wise)
    done = reflex("diagnose", failures, "--program", cause, "--lm", WEAK, "--max-usd", 5, "--json")
    assert (done.code, done.json["left"]) == (0, 0)
    assert 0 < done.json["cost_usd"] < 0.01


def test_a_program_of_another_model_warns_and_everything_needs_review(
    failures: Path, cause: Path, reflex: Reflex, serve: Any
) -> None:
    """Its threshold is dropped, and so is its score."""
    serve(wise)
    done = reflex("diagnose", failures, "--program", cause, "--lm", WEAK, "--json")
    assert done.code == 0
    assert f"warning: {read(cause).name} was compiled for offline/1, not for {WEAK}" in done.err
    assert all(one["needs_review"] and one["score"] == "unmeasured" for one in done.json["diagnoses"])
    assert {one["model"] for one in done.json["diagnoses"]} == {WEAK}


def test_a_model_out_of_reach_keeps_what_was_done(failures: Path, cause: Path, reflex: Reflex, serve: Any) -> None:
    """Exit code 1, the sentence on stderr, the diagnoses on stdout."""

    def think(request: Any) -> Any:
        return wise(request) if len(server.requests) <= 5 else error(503, retry_after="0.01")

    server = serve(think)
    done = reflex("diagnose", failures, "--program", cause, "--lm", WEAK, "--json")
    assert done.code == 1
    assert (len(done.json["diagnoses"]), done.json["left"]) == (5, N - 5)
    assert f"({N - 5} left)" in done.err
    assert "Traceback" not in done.err


def test_a_model_out_of_reach_from_the_start_is_no_traceback(
    failures: Path, cause: Path, reflex: Reflex, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    """For people, too."""
    serve(lambda _: error(529, retry_after="0.01"))
    done = reflex("diagnose", failures, "--program", cause, "--lm", WEAK, "--concurrency", 4)
    assert done.code == 1
    assert f"({N} left)" in done.err
    assert KEY not in done.err


def test_stderr_says_nothing_that_nobody_can_read(failures: Path, cause: Path, tmp_path: Path, serve: Any) -> None:
    """A retry may be told of in a sentence, or not at all; in a real process, where logging goes to stderr."""
    serve(every(3, error(503, retry_after="0.01")))
    done = process(tmp_path, "diagnose", failures, "--program", cause, "--lm", WEAK, "--json")
    assert done.code == 0
    assert [line for line in done.err.splitlines() if " " not in line] == []


def test_refusals_and_unparsable_answers_need_review(failures: Path, cause: Path, reflex: Reflex, serve: Any) -> None:
    """They are diagnoses without a cause, not errors."""
    serve(every(2, refusal(), lambda _: answer("Let me think.")))
    done = reflex("diagnose", failures, "--program", cause, "--lm", WEAK, "--json")
    assert (done.code, done.json["left"]) == (0, 0)
    reasons = [one["review_reason"].partition(":")[0] for one in done.json["diagnoses"]]
    assert reasons == ["refusal", "unparsable"] * (N // 2)
    assert {one["root_cause"] for one in done.json["diagnoses"]} == {None}
    assert "(no answer)" in reflex("diagnose", failures, "--program", cause, "--lm", WEAK).out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"task": "t", "actual_outcome": "a"}\n{"task": \n', "<stdin>:2: not JSON"),
        ('{"task": "t"}\n', "<stdin>:1: actual_outcome is missing"),
        ("", "<stdin>: the file is empty"),
        ('["task"]\n', "<stdin>:1: a JSON list where an object is needed"),
        ('{"task": "t", "actual_outcome": "a", "severity": "bad"}', "<stdin>:1: severity cannot be used"),
    ],
)
def test_failures_that_cannot_be_read_are_named_with_their_line(
    text: str, said: str, cause: Path, reflex: Reflex
) -> None:
    """Nothing is diagnosed then."""
    assert said in reflex("diagnose", "-", "--program", cause, stdin=text).refusal


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.jsonl"], "nope.jsonl: no such file"),
        (["FAILURES", "--program", "nope.json"], "nope.json: no such program file"),
        (["FAILURES", "--program", "RULE"], "this is a rule program, not a root_cause program"),
        (["FAILURES", "--lm", "openai/gpt-4o"], "needs a key: set OPENAI_API_KEY"),
        (["FAILURES", "--lm", "nobody/m"], "'nobody/m' is not known"),
        (["FAILURES", "--lm", "hosted_vllm/m"], "set HOSTED_VLLM_API_BASE"),
        (["."], ".: a folder; give one JSON Lines file"),
    ],
)
def test_what_cannot_be_used_is_named(
    arguments: list[str], said: str, failures: Path, cause: Path, rule: Path, reflex: Reflex
) -> None:
    """One sentence, exit code 2."""
    places = {"FAILURES": str(failures), "RULE": str(rule)}
    arguments = [places.get(each, each) for each in arguments]
    if "--program" not in arguments:
        arguments += ["--program", str(cause)]
    assert said in reflex("diagnose", *arguments).refusal


def test_a_flipped_byte_anywhere_is_noticed(failures: Path, cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """In a prompt, a label, a score or the digest: the file is not trusted."""
    content, rng = cause.read_bytes(), random.Random(1)
    whole = json.loads(content)
    for _ in range(60):
        place = rng.randrange(len(content))
        flipped = content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]
        path = tmp_path / "flipped.json"
        path.write_bytes(flipped)
        done = reflex("diagnose", failures, "--program", path)
        try:
            same = json.loads(flipped) == whole
        except ValueError:
            same = False
        assert done.code == (0 if same else 2), place
        if not same:
            assert "flipped.json" in done.refusal


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read as a program"),
        (b"[1, 2]", "not a dspy-reflex program"),
        (b'{"format": "dspy-reflex/program", "format_version": 99}', "program format 99 is not 1"),
        (b'{"format": "dspy-reflex/program", "format_version": 1}', "the program lacks"),
        (b"\xff\xfe", "cannot be read as a program"),
        (b"[" * 200_000, "cannot be read as a program"),
    ],
)
def test_a_file_that_is_no_program_is_one_sentence(
    content: bytes, said: str, failures: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """Whatever is in it."""
    path = tmp_path / "no-program.json"
    path.write_bytes(content)
    assert said in reflex("diagnose", failures, "--program", path).refusal


def test_half_a_character_in_a_program_is_one_sentence(
    failures: Path, cause: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """JSON can hold what no text file can."""
    path = tmp_path / "half.json"
    path.write_text(json.dumps({**json.loads(cause.read_text()), "seed": "\ud800"}), encoding="utf-8")
    assert "half.json" in reflex("diagnose", failures, "--program", path).refusal


def test_a_program_whose_labels_are_not_its_taxonomys_is_refused(
    failures: Path, cause: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """Even with a digest that fits."""
    data = {name: value for name, value in read(cause).data.items() if name != "digest"}
    other = {**data, "labels": [*data["labels"][:-1], "bad_luck"]}
    path = tmp_path / "other.json"
    path.write_text(json.dumps({**other, "digest": digest_of(other)}), encoding="utf-8")
    assert "labels are not the taxonomy's" in reflex("diagnose", failures, "--program", path).refusal
    assert dumps(seal(data)) == cause.read_text(encoding="utf-8")


def test_a_row_without_an_id_and_with_unknown_fields_is_diagnosed(cause: Path, reflex: Reflex) -> None:
    """Only task and outcome are needed; a label in the row is not looked at."""
    row = {"task": "Add 2 and 2.", "actual_outcome": "It said 5.", "root_cause": "nonsense", "mood": "bad"}
    (found,) = reflex("diagnose", "-", "--program", cause, "--json", stdin=json.dumps(row)).json["diagnoses"]
    assert found["failure_id"] == ""
    assert found["root_cause"] in read(cause).labels


def test_a_long_id_does_not_push_the_cause_off_the_table(cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """The table is read by people, also through a pipe."""
    path = write_rows(
        tmp_path / "a.jsonl", [{"id": "x" * 150, "task": "t", "actual_outcome": "Error 503 from the API"}]
    )
    label = reflex("diagnose", path, "--program", cause, "--json").json["diagnoses"][0]["root_cause"]
    table = reflex("diagnose", path, "--program", cause).out.partition("\nby ")[0]
    assert label in table
