"""`dspy-reflex propose`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.records.proposal import Proposal
from dspy_reflex.runtime.artifact import read
from tests.cli.runner import Done, Reflex, files_below
from tests.optimize.thinking import WEAK, everything, wise
from tests.runtime.lm.loopback import answer, error, refusal

TIMEOUT = {"task": "Send the report.", "actual_outcome": "POST /mail timed out after 30 s."}
WRONG = {"task": "Sum the invoices.", "actual_outcome": "Reported 12 EUR, the sum is 21 EUR."}


def lines(*rows: dict[str, Any]) -> str:
    """JSON Lines, with ids."""
    return "".join(json.dumps({"id": f"f{number}", **row}) + "\n" for number, row in enumerate(rows))


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent's rule files; one of the three is not there."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "SOUL.md").write_text("# Soul\n\n- Be brief.\n", encoding="utf-8")
    (folder / "TOOLS.md").write_text("# Tools\n- Use the staging channel for tests.", encoding="utf-8")
    return folder


@pytest.fixture
def propose(reflex: Reflex, agent: Path, rule: Path, cause: Path) -> Any:
    """Propose for failures on standard input."""

    def run(text: str, *arguments: object) -> Done:
        options = ("--program", rule, "--cause-program", cause, "--base-dir", agent)
        return reflex("propose", "-", *options, *arguments, stdin=text)

    return run


def test_each_proposal_is_a_diff_of_a_rule_file(propose: Any, agent: Path) -> None:
    """With the rule as its one new item; applying it is somebody else's decision."""
    before = files_below(agent)
    done = propose(
        lines({**TIMEOUT, "root_cause": "tool_failure"}, {**WRONG, "root_cause": "reasoning_error"}), "--json"
    )
    assert done.code == 0, done.err
    for row in done.json["proposals"]:
        proposal = Proposal.model_validate({name: row[name] for name in Proposal.model_fields})
        assert row["file"] == f"{proposal.component}.md"
        assert row["diff"].startswith(f"--- a/{row['file']}\n+++ b/{row['file']}\n")
        added = [line for line in row["diff"].splitlines() if line.startswith("+") and not line.startswith("+++")]
        item = rf"\+- \[{proposal.id}\] _\d{{4}}-\d\d-\d\d_: {re.escape(proposal.rule)}"
        assert sum(re.fullmatch(item, line) is not None for line in added) == 1
        kept = [line[1:] for line in row["diff"].splitlines()[3:] if line.startswith(" ")]
        assert set(kept) <= set((agent / row["file"]).read_text().splitlines()) if kept else True
    assert files_below(agent) == before


def test_nothing_on_disk_changes(propose: Any, tmp_path: Path) -> None:
    """Neither the rule files nor anything beside them."""
    before = files_below(tmp_path)
    for more in ([], ["--json"]):
        assert propose(lines(TIMEOUT, WRONG), *more).code == 0
    assert files_below(tmp_path) == before


def test_people_see_why_by_whom_and_the_diff(propose: Any, rule: Path) -> None:
    """The failures it answers are named."""
    done = propose(lines({**TIMEOUT, "root_cause": "tool_failure"}))
    assert "tool_failure  f0" in done.out
    assert f"by     {read(rule).name} on offline/1; val (chosen on it) rule score" in done.out
    assert "+<!-- reflex:begin" in done.out
    assert "1 failures, 1 groups by cause and symptom" in done.err


def test_failures_of_one_mechanism_get_one_rule(propose: Any) -> None:
    """The same cause and symptom with other numbers; groups that get the same rule are one proposal."""
    again = {**TIMEOUT, "actual_outcome": "POST /mail timed out after 90 s."}
    login = {"task": "Send the report.", "actual_outcome": "401 Unauthorized: the token has expired."}
    rows = [{**row, "root_cause": "tool_failure"} for row in (TIMEOUT, again, login)]
    rows.append({**TIMEOUT, "root_cause": "overconfidence"})
    done = propose(lines(*rows), "--json")
    assert [row["failure_ids"] for row in done.json["proposals"]] == [["f0", "f1", "f2"], ["f3"]]
    assert "4 failures, 3 groups by cause and symptom" in done.err


def test_a_failures_own_root_cause_is_used(propose: Any, reflex: Reflex, cause: Path) -> None:
    """Whatever the program would have said; without one, what it says."""
    (told,) = reflex("diagnose", "-", "--program", cause, "--json", stdin=lines(WRONG)).json["diagnoses"]
    for label in ("context_loss", "knowledge_gap"):
        (row,) = propose(lines({**WRONG, "root_cause": label}), "--json").json["proposals"]
        assert row["root_cause"] == label
    (row,) = propose(lines(WRONG), "--json").json["proposals"]
    assert row["root_cause"] == told["root_cause"]


def test_a_failure_with_its_own_root_cause_is_not_diagnosed(propose: Any, serve: Any) -> None:
    """It would be paid for and thrown away: one question for each mechanism is all."""
    server = serve(wise)
    rows = ({**TIMEOUT, "root_cause": "tool_failure"}, {**WRONG, "root_cause": "reasoning_error"})
    assert len(propose(lines(*rows), "--lm", WEAK, "--json").json["proposals"]) == 2
    assert len(server.requests) == 2


def test_an_unknown_root_cause_is_refused(propose: Any) -> None:
    """With the labels there are."""
    assert "knows no 'bad_luck'; its causes are" in propose(lines({**WRONG, "root_cause": "bad_luck"})).refusal


def test_rules_that_are_there_are_shown_to_the_program(propose: Any, serve: Any) -> None:
    """Of every file, so that it does not repeat one."""
    server = serve(wise)
    assert propose(lines({**WRONG, "root_cause": "reasoning_error"}), "--lm", WEAK).code == 0
    asked = everything(server.requests[-1]).rpartition("[[ ## existing_rules ## ]]")[2]
    assert "- Be brief." in asked
    assert "- Use the staging channel for tests." in asked


def test_the_base_dir_comes_from_the_environment(
    reflex: Reflex, agent: Path, rule: Path, cause: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`REFLEX_BASE_DIR`, where no option is given."""
    options = ("propose", "-", "--program", rule, "--cause-program", cause, "--json")
    text = lines({**TIMEOUT, "root_cause": "tool_failure"})
    monkeypatch.setenv("REFLEX_BASE_DIR", str(agent))
    (there,) = reflex(*options, stdin=text).json["proposals"]
    monkeypatch.delenv("REFLEX_BASE_DIR")
    (here,) = reflex(*options, stdin=text).json["proposals"]
    assert there["diff"] != here["diff"]


def test_concurrency_changes_nothing(propose: Any, failures: Path) -> None:
    """The same proposals in the same order."""
    text = failures.read_text(encoding="utf-8")
    assert propose(text, "--json").out == propose(text, "--json", "--concurrency", 6).out


def test_one_refusal_does_not_lose_the_other_proposals(propose: Any, serve: Any) -> None:
    """It is counted apart and said; what was paid for is shown."""

    def think(request: Any) -> Any:
        return refusal() if "invoices" in everything(request).rpartition("[[ ## failures ## ]]")[2] else wise(request)

    serve(think)
    rows = ({**TIMEOUT, "root_cause": "tool_failure"}, {**WRONG, "root_cause": "reasoning_error"})
    done = propose(lines(*rows), "--lm", WEAK, "--json")
    assert [row["root_cause"] for row in done.json["proposals"]] == ["tool_failure"]


@pytest.mark.parametrize("own", [{}, {"root_cause": "tool_failure"}], ids=["to diagnose", "diagnosed"])
def test_a_model_out_of_reach_is_exit_code_1(own: dict[str, str], propose: Any, serve: Any) -> None:
    """While diagnosing as well as while proposing; one sentence."""
    serve(lambda _: error(503, retry_after="0.01"))
    done = propose(lines({**TIMEOUT, **own}), "--lm", WEAK, "--json")
    assert done.code == 1
    assert "stopped: " in done.err
    assert done.json["proposals"] == []


def test_failures_without_an_answer_are_said_to_be_left_out(propose: Any, serve: Any) -> None:
    """No cause, no rule; but not in silence."""
    serve(lambda _: answer("Hm."))
    done = propose(lines(WRONG, TIMEOUT), "--lm", WEAK, "--json")
    assert done.json["proposals"] == []
    told = [line for line in done.err.splitlines() if "was compiled for" not in line]
    assert [line for line in told if line != "2 failures, 0 groups by cause and symptom"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base-dir", "nowhere"], "nowhere: no such folder"),
        (["--program", "nope.json"], "nope.json: no such program file"),
        (["--cause-program", "nope.json"], "nope.json: no such program file"),
        (["--lm", "openai/gpt-4o"], "set OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: list[str], said: str, propose: Any) -> None:
    """One sentence, exit code 2."""
    assert said in propose(lines(WRONG), *arguments).refusal


def test_programs_of_the_wrong_kind_are_refused(propose: Any, rule: Path, cause: Path) -> None:
    """Each option has its kind."""
    assert "this is a root_cause program, not a rule program" in propose(lines(WRONG), "--program", cause).refusal
    assert "this is a rule program, not a root_cause program" in propose(lines(WRONG), "--cause-program", rule).refusal


def test_a_rule_file_that_is_not_text_is_named(propose: Any, agent: Path) -> None:
    """And left alone."""
    (agent / "AGENTS.md").write_bytes(b"\xff\xfe\x00rules")
    assert "not UTF-8" in propose(lines(WRONG)).refusal
