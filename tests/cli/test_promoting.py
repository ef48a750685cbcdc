"""`dspy-reflex promote`, and what it leaves for `programs history` and `programs rollback`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.benchmark.promote import MARGIN
from dspy_reflex.cli.promoting import command
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.records.move import Move
from dspy_reflex.runtime.artifact import Artifact, dumps, read, seal
from dspy_reflex.runtime.history import first
from dspy_reflex.runtime.history import promote as make_current
from dspy_reflex.runtime.library import current
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.cli.runner import Reflex, files_below
from tests.optimize.compiles import write_rows
from tests.optimize.thinking import WEAK, Think, says, texts
from tests.runtime.lm.loopback import Reply, Request, error
from tests.runtime.programs import published

SIX = load_taxonomy()
LIBRARY = Path("programs")
SKILLS: dict[str, Callable[[str, int], bool]] = {
    "perfect": lambda _, __: True,
    "fair": lambda _, number: number % 2 == 0,
    "lopsided": lambda label, _: label != "tool_failure",
    "strong on tools": lambda label, number: label == "tool_failure" or number % 4 == 0,
    "": lambda _, number: number % 4 == 0,
}
"""What a program whose instructions name a skill gets right: by label, and by the number of the failure."""


def program(skill: str, *, model: str = WEAK, **known: Any) -> Artifact:
    """A root-cause program with a skill."""
    return published(taxonomy=SIX, instructions=f"Name the cause. Skill: <{skill}>", model=model, **known)


def saved(artifact: Artifact, folder: str = "candidates") -> Path:
    """Its file."""
    path = Path(folder) / f"{artifact.version}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(dumps(artifact), encoding="utf-8")
    return path


def skilled(request: Request) -> Reply:
    """Answers as far as the skill goes that the prompt names."""
    system, *_, asked = (message["content"] for message in texts(request))
    found, case = re.search(r"Skill: <(.*?)>", system), re.search(r"it was (\w+) in run (\d+)", asked)
    assert case
    right = SKILLS[found[1] if found else ""](case[1], int(case[2]))
    return says(case[1] if right else next(label for label in SIX.labels if label != case[1]))


def exam(path: Path, count: int = 24, units: int = 24) -> Path:
    """A test set: so many failures, labels in turn, in so many families."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        label = SIX.labels[number % 6]
        said = f"it was {label} in run {number // 6}"
        row = {"id": f"e{number}", "task": f"Do errand {number}.", "actual_outcome": said, "root_cause": label}
        rows.append({**row, "family": f"f{number % units}"})
    return write_rows(path, rows)


@pytest.fixture
def promote(reflex: Reflex, serve: Callable[[Think], object], tmp_path: Path) -> Reflex:
    """Run `promote` on a served model; on a small exam unless another one is named."""
    serve(skilled)
    path = exam(tmp_path / "exam.jsonl")

    def run(*arguments: object, stdin: str = "") -> Any:
        dataset = () if "--dataset" in arguments else ("--dataset", path)
        return reflex("promote", *dataset, "--lm", WEAK, "--concurrency", 8, *arguments, stdin=stdin)

    return run


def champion() -> str:
    """The version that is current."""
    return current(LIBRARY, "root_cause")[WEAK]


def history() -> list[dict[str, Any]]:
    """The lines of the history."""
    return [json.loads(line) for line in (LIBRARY / "root_cause" / "history.jsonl").read_text().splitlines()]


def test_a_better_program_becomes_current(promote: Reflex) -> None:
    """Its file is copied, the line says why, and stdout is one JSON document."""
    old, new = program("fair"), program("perfect")
    first(LIBRARY, old)
    done = promote(saved(new), "--json", "--by", "the release job")
    assert done.code == 0, done.err
    assert champion() == new.version
    assert read(LIBRARY / "root_cause" / f"{new.version}.json") == new
    line = history()[-1]
    told = {name: line[name] for name in ("action", "model", "from", "to", "against", "dataset", "n", "by", "margin")}
    assert told == {
        "action": "promote", "model": WEAK, "from": old.version, "to": new.version, "against": old.version,
        "dataset": "exam", "n": 24, "by": "the release job", "margin": 0.03,
    }  # fmt: skip
    assert 0 < line["interval"][0] <= line["difference"] <= line["interval"][1]
    assert line["mcnemar_p"] == pytest.approx(2 * 0.5**12)
    assert (done.json["promoted"], done.json["decided_before"]) == (True, 0)
    assert {name: done.json["move"][name] for name in line} == line
    assert done.json["comparison"]["units"] == 24


def test_without_a_champion_the_uncompiled_program_is_the_measure_and_that_is_said(promote: Reflex) -> None:
    """A program that is not better than that does not become current either."""
    done = promote(saved(program("perfect")), "--json")
    assert (done.code, champion()) == (0, program("perfect").version)
    assert f"programs has no root_cause program for {WEAK} yet: comparing with the uncompiled one" in done.err
    assert (history()[0]["against"], "from" in history()[0]) == ("uncompiled", False)
    assert promote(saved(program("", seed=3)), "--library", "other").code == 1
    assert current(Path("other"), "root_cause") == {}


def test_a_worse_program_is_refused_and_that_is_noted(promote: Reflex) -> None:
    first(LIBRARY, program("perfect"))
    done = promote(saved(program("fair")))
    assert done.code == 1
    assert "refused: it " in done.out
    assert champion() == program("perfect").version
    assert [line["action"] for line in history()] == ["first", "refuse"]
    assert not (LIBRARY / "root_cause" / f"{program('fair').version}.json").exists()


def test_a_copy_is_refused_without_a_question(promote: Reflex) -> None:
    """The same digest; the test set has not been looked at."""
    first(LIBRARY, program("fair"))
    done = promote(saved(program("fair")), "--json")
    assert (done.code, done.json["promoted"], done.json["comparison"]) == (1, False, None)
    assert done.json["reason"] == "it is an A/A copy: the very program that it would be compared with"
    assert "rows" not in history()[-1]
    assert "answers" not in done.err


def test_a_program_that_only_differs_in_name_is_refused_as_a_copy(promote: Reflex) -> None:
    first(LIBRARY, program("fair"))
    done = promote(saved(program("fair", seed=1)), "--json")
    assert (done.code, done.json["comparison"]["same"]) == (1, True)
    assert done.json["reason"].startswith("it is an A/A copy: the same answers to all 24 failures")
    assert champion() == program("fair").version


def test_a_program_that_breaks_a_class_is_refused_however_good_it_is(promote: Reflex, tmp_path: Path) -> None:
    first(LIBRARY, program("strong on tools"))
    done = promote(saved(program("lopsided")), "--json", "--dataset", exam(tmp_path / "long.jsonl", 60, 60))
    assert done.code == 1
    assert done.json["comparison"]["interval"][0] > 0
    assert done.json["reason"].startswith("it breaks tool_failure (recall 1.00 to 0.00, p=0.012)")
    (broken,) = (each for each in done.json["comparison"]["classes"] if each["label"] == "tool_failure")
    assert (broken["n"], broken["before"], broken["after"]) == (10, 1.0, 0.0)
    assert champion() == program("strong on tools").version


def test_the_table_names_both_programs_and_every_class(promote: Reflex, tmp_path: Path) -> None:
    first(LIBRARY, program("strong on tools"))
    out = promote(saved(program("lopsided")), "--dataset", exam(tmp_path / "long.jsonl", 60, 60)).out
    for text in (
        f"candidate   {program('lopsided').name}  macro-F1 0.", f"against     {program('strong on tools').name}",
        "n=60 in 60 units of long, McNemar p=0.", "18 tokens an answer", "refused: it breaks tool_failure",
    ):  # fmt: skip
        assert text in out
    assert re.search(r"tool_failure +recall 1.00 to 0.00, n=10, p=0.012  broken", out)
    assert all(f"  {label} " in out for label in SIX.labels)


def test_how_often_the_test_set_has_decided_is_said(promote: Reflex, tmp_path: Path) -> None:
    """It is known by its rows, under another name as well; another one starts anew."""
    first(LIBRARY, program("fair"))
    assert "has decided" not in promote(saved(program(""))).out
    said = promote(saved(program("perfect"))).out
    assert "this test set has decided once before; its next verdicts are worth less" in said
    again = promote(saved(program("fair")), "--dataset", exam(tmp_path / "renamed.jsonl"))
    assert "this test set has decided 2 times before" in again.out
    other = promote(saved(program("fair")), "--dataset", exam(tmp_path / "other.jsonl", 30, 30), "--json")
    assert other.json["decided_before"] == 0


def test_too_few_families_decide_nothing(promote: Reflex, tmp_path: Path) -> None:
    done = promote(saved(program("perfect")), "--dataset", exam(tmp_path / "few.jsonl", units=10))
    assert done.code == 1
    assert "refused: 10 units (families or groups) are no evidence; 20 are needed" in done.out


def test_a_partial_program_may_win_and_is_noted_as_such(promote: Reflex) -> None:
    whole = program("perfect").data
    partial = seal({name: value for name, value in whole.items() if name != "digest"} | {"partial": True})
    done = promote(saved(partial))
    assert (done.code, champion()) == (0, partial.version)
    assert f"{partial.name}, partial" in done.out
    assert history()[0]["partial"] is True


@pytest.mark.parametrize("spelt", ["{0.version}", "{0.name}"])
def test_a_candidate_may_be_named_by_its_version_in_the_library(promote: Reflex, spelt: str) -> None:
    first(LIBRARY, program("fair"))
    saved(program("perfect"), "programs/root_cause")
    assert promote(spelt.format(program("perfect"))).code == 0
    assert champion() == program("perfect").version


def test_a_program_from_elsewhere_can_be_the_measure_of_the_first(promote: Reflex) -> None:
    """Where the library has a champion, only that one can: it is what would be replaced."""
    done = promote(saved(program("perfect")), "--against", saved(program("fair")), "--json")
    assert (done.code, history()[0]["against"], done.json["move"]["from"]) == (0, program("fair").version, None)
    refused = promote(saved(program("fair")), "--against", saved(program(""))).refusal
    assert f"{champion()} is current for {WEAK} in programs, not {program('').name}; leave out --against" in refused


def test_a_program_for_another_model_is_refused_in_one_sentence(promote: Reflex) -> None:
    """Either of the two; nothing is asked or noted."""
    other = program("perfect", model="openai/other")
    said = promote(saved(other)).refusal
    assert said == f"error: {other.name} was compiled for openai/other, not for {WEAK}; name its model with --lm"
    assert "was compiled for openai/other" in promote(saved(program("perfect")), "--against", saved(other)).refusal
    assert not LIBRARY.exists()


@pytest.mark.parametrize("who", ["candidate", "champion"])
def test_rows_that_either_program_has_seen_are_refused(promote: Reflex, tmp_path: Path, who: str) -> None:
    rows = load_evalset(tmp_path / "exam.jsonl", SIX).rows
    seen = program("perfect", data={"name": "exam", "train": [rows[7].row_hash], "val": []})
    candidate, old = (seen, program("fair")) if who == "candidate" else (program("fair"), seen)
    first(LIBRARY, old)
    said = promote(saved(candidate)).refusal
    assert f"{seen.name} was made with 1 of the 24 rows of exam; name a --dataset or --split" in said
    assert (champion(), len(history())) == (old.version, 1)


def test_an_outage_decides_nothing(reflex: Reflex, serve: Callable[[Think], object], tmp_path: Path) -> None:
    serve(lambda _: error(400, "no"))
    first(LIBRARY, program("fair"))
    path = exam(tmp_path / "exam.jsonl")
    assert WEAK in reflex("promote", saved(program("perfect")), "--dataset", path, "--lm", WEAK).refusal
    assert len(history()) == 1


def test_a_cheaper_program_wins_if_it_is_not_worse(reflex: Reflex, small: Path) -> None:
    """The same answers from a prompt without its padding; never with a margin of nothing, nor the other way round."""
    lean, padded = (published(taxonomy=SIX, model="offline/1", instructions=f"{told}{' .' * pad}")
                    for told, pad in ((published(taxonomy=SIX).data["instructions"], pad) for pad in (0, 4000)))  # fmt: skip
    first(LIBRARY, padded)
    options = ("promote", saved(lean), "--dataset", small)
    assert reflex(*options, "--margin", 0).code == 1
    done = reflex(*options)
    assert done.code == 0, done.out
    assert re.search(r"promoted: it takes \d\d% fewer tokens and is not worse by more than 0.03", done.out)
    assert "A/A copy" in reflex("promote", saved(padded), "--dataset", small).out


def test_rules_are_compared_by_their_score(reflex: Reflex, rule: Path, small: Path) -> None:
    done = reflex("promote", rule, "--dataset", small, "--json")
    assert (done.json["comparison"]["metric"], done.json["move"].get("mcnemar_p")) == ("rule score", None)
    assert done.code == (0 if done.json["promoted"] else 1)
    assert (LIBRARY / "rule" / "history.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.json"], "nope.json: no such program file"),
        (["0123456789ab"], "0123456789ab: no such program file"),
        (["{candidate}", "--against", "nope"], "nope: no such program file"),
        (["{candidate}", "--dataset", "nope"], "nope: no such file"),
        (["{candidate}", "--margin", "-1"], "-1.0 is not in the range"),
        (["{candidate}", "--lm", "openai/gpt-4o"], "was compiled for"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(promote: Reflex, arguments: list[str], said: str) -> None:
    candidate = saved(program("perfect"))
    assert said in promote(*(each.format(candidate=candidate) for each in arguments)).refusal
    assert not LIBRARY.exists()


def test_the_margin_of_the_command_line_is_that_of_the_gate() -> None:
    """It is written twice so that `--help` imports nothing."""
    (margin,) = (each.default for each in command.params if each.name == "margin")
    assert margin == MARGIN


def test_history_shows_the_moves_and_rollback_undoes_the_last(promote: Reflex, reflex: Reflex) -> None:
    first(LIBRARY, program("fair"))
    promote(saved(program("perfect")), "--by", "the release job")
    done = reflex("programs", "rollback", "root_cause", "--by", "the night shift", "--json")
    assert (done.code, done.json["action"], done.json["to"]) == (0, "rollback", program("fair").version)
    assert champion() == program("fair").version
    lines = reflex("programs", "history", "root_cause").out.splitlines()
    assert [line.split()[1] for line in lines] == ["first", "promote", "rollback"]
    assert f"{program('fair').version} -> {program('perfect').version}  it is better: macro-F1" in lines[1]
    assert lines[2].endswith(f"back from {program('perfect').version}, by the night shift")
    assert [row["action"] for row in reflex("programs", "history", "root_cause", "--json").json] == [
        "first", "promote", "rollback",
    ]  # fmt: skip


def test_a_damaged_line_of_the_history_is_named_and_the_others_are_shown(reflex: Reflex) -> None:
    first(LIBRARY, program("fair"))
    with (LIBRARY / "root_cause" / "history.jsonl").open("a") as file:
        file.write('{"action": "prom')
    done = reflex("programs", "history", "root_cause")
    assert (done.code, done.out.count("\n")) == (0, 1)
    assert "history.jsonl:2 cannot be read and is passed over" in done.err
    assert len(reflex("programs", "history", "root_cause", "--json").json) == 1


def test_where_nothing_was_decided_there_is_nothing_to_show_or_to_go_back_to(reflex: Reflex) -> None:
    assert reflex("programs", "history", "rule").out == "nothing has been decided about rule in programs\n"
    assert "there is nothing to go back to" in reflex("programs", "rollback", "rule").refusal
    assert (
        "no program to go back to for offline/1"
        in reflex("programs", "rollback", "rule", "--model", "offline/1").refusal
    )
    assert not files_below(Path())


def test_which_model_goes_back_must_be_said_where_several_could(reflex: Reflex) -> None:
    for model in (WEAK, "openai/other"):
        old, new = program("", model=model), program("fair", model=model)
        first(LIBRARY, old)
        move = Move(action="promote", model=model, before=old.version, after=new.version, reason="it is better")
        make_current(LIBRARY, new, move)
    assert f"name one of {WEAK}, openai/other with --model" in reflex("programs", "rollback", "root_cause").refusal
    done = reflex("programs", "rollback", "root_cause", "--model", "openai/other")
    assert f"is current for openai/other again, instead of {program('fair', model='openai/other').version}" in done.out
    assert champion() == program("fair").version


def test_the_files_of_a_library_are_still_its_programs(promote: Reflex, reflex: Reflex) -> None:
    """The history is no program, and breaks no list."""
    first(LIBRARY, program("fair"))
    promote(saved(program("perfect")))
    rows = reflex("programs", "list", "--json").json
    assert {row["name"]: row["current"] for row in rows if row["path"].startswith("programs")} == {
        program("fair").name: False, program("perfect").name: True,
    }  # fmt: skip
