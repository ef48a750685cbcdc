"""`dspy-reflex propose` without a FILE: what is filed for review, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.records.review import FiledProposal
from dspy_reflex.store import spending
from tests.cli.loop import RULE, Workspace
from tests.cli.runner import Done, files_below
from tests.optimize.thinking import WEAK, wise
from tests.runtime.lm.loopback import error


@pytest.fixture
def propose(workspace: Workspace, rule: Path) -> Any:
    """Propose for what is in the store."""

    def run(*arguments: object) -> Done:
        return workspace("propose", "--program", rule, *arguments)

    return run


def test_a_rule_is_filed_and_shown_with_its_diff(propose: Any, workspace: Workspace) -> None:
    """The failures behind it, whose file it would change, and how; no file is changed."""
    ids = workspace.fail()
    before = files_below(workspace.agent)
    done = propose("--json")
    assert done.code == 0, done.err
    (row,) = done.json["proposals"]
    filed = FiledProposal.model_validate({name: row[name] for name in FiledProposal.model_fields})
    assert set(filed.proposal.failure_ids) == set(ids)
    assert Path(filed.file).parent == workspace.agent
    assert f"+- [{filed.id}] _" in row["diff"]
    assert workspace.state(filed.id) == "pending"
    assert files_below(workspace.agent) == before


def test_people_see_the_same(propose: Any, workspace: Workspace) -> None:
    ids = workspace.fail()
    done = propose()
    for said in (*ids, "tool_failure / timeout", "  rule   ", "  why    ", str(workspace.agent), "+<!-- reflex:begin"):
        assert said in done.out
    assert done.err.splitlines()[-1] == "1 rules proposed"


def test_what_has_no_diagnosis_yet_is_counted(propose: Any, workspace: Workspace) -> None:
    """With the command that changes it: what nobody diagnosed is not answered by any rule."""
    workspace.fail()
    assert "no diagnosis" not in propose().err
    for number in (1, 2):
        assert workspace("log", "--agent", "bot", "--task", f"Do {number}.", "--actual", "It did not.").code == 0
    done = propose("--json")
    assert done.json["undiagnosed"] == 2
    assert "2 failures have no diagnosis yet; run `dspy-reflex diagnose --days 30`" in done.err


def test_a_second_run_proposes_nothing_and_says_why(propose: Any, workspace: Workspace) -> None:
    workspace.fail()
    workspace.fail(1, "overconfidence")
    (row,) = propose("--json").json["proposals"]
    again = propose()
    assert again.out == ""
    assert f"skipped: tool_failure/timeout of * (2 failures): {row['id']} is pending" in again.err
    assert "skipped: overconfidence/timeout of * (1 failures): too few; a rule takes 2" in again.err


def test_unsure_failures_are_counted_and_can_be_included(propose: Any, workspace: Workspace) -> None:
    workspace.fail(said={"needs_review": True})
    done = propose()
    assert "2 failures with an unsure diagnosis do not count; --include-unsure counts them" in done.err
    assert len(propose("--include-unsure", "--json").json["proposals"]) == 1


def test_only_one_agent_and_those_that_work_for_it(propose: Any, workspace: Workspace) -> None:
    workspace.fail(1, agent_id="boss")
    workspace.fail(1, agent_id="helper", parent_agent_id="boss")
    workspace.fail(2, "overconfidence", agent_id="stranger")
    assert propose("--agent", "boss", "--json").json["proposals"] == []
    (row,) = propose("--agent", "boss", "--with-children", "--json").json["proposals"]
    assert row["proposal"]["root_cause"] == "tool_failure"


def test_settings_say_whose_file_it_is(propose: Any, workspace: Workspace) -> None:
    """And the command line has the last word on the folder of everybody else."""
    (workspace.folder / "mine").mkdir()
    text = '[[targets]]\nagent = "veya"\nroot = "mine"\nfiles = {SOUL = "CLAUDE.md", AGENTS = "CLAUDE.md", TOOLS = "CLAUDE.md"}\n'
    (workspace.folder / "reflex.toml").write_text(text)
    workspace.fail()
    workspace.fail(2, "overconfidence", agent_id="other")
    mine, other = propose("--base-dir", workspace.agent, "--json").json["proposals"]
    assert (mine["agent_id"], mine["file"]) == ("veya", str(workspace.folder / "mine" / "CLAUDE.md"))
    assert f"+### {mine['proposal']['component']}" in mine["diff"]
    assert (other["agent_id"], Path(other["file"]).parent) == ("*", workspace.agent)


def test_an_outage_is_exit_code_1_and_keeps_the_failures_waiting(
    propose: Any, workspace: Workspace, serve: Any
) -> None:
    workspace.fail()
    serve(lambda _: error(503, retry_after="0.01"))
    done = propose("--lm", WEAK, "--json")
    assert (done.code, done.json["proposals"], done.json["left"]) == (1, [], 1)
    assert "stopped: " in done.err


def test_what_it_cost_is_in_the_store(propose: Any, workspace: Workspace, serve: Any) -> None:
    serve(wise)
    workspace.fail()
    done = propose("--lm", WEAK, "--json").json
    assert done["calls"] == 1
    assert workspace.of(spending.spent_today) == done["cost_usd"] > 0


def test_policies_decide_when_asked_to(propose: Any, workspace: Workspace) -> None:
    """None is there unless somebody wrote it down; one that may not fire says why."""
    workspace.file(RULE, *workspace.fail())
    assert "there is no policy in the settings" in propose("--auto").err
    policy = (
        '[[policies]]\nname = "fast"\ncomponents = ["TOOLS", "AGENTS"]\ncauses = ["tool_failure"]\n'
        'min_confidence = 0.5\nmin_failures = 2\nmax_severity = "high"\nper_day = 3\n'
    )
    (workspace.folder / "reflex.toml").write_text(f'base_dir = "agent"\n{policy}')
    done = workspace("review", "auto", "--json")
    (made,) = done.json["decisions"]
    assert (made["policy"], made["approved"]) == ("fast", False)
    assert "is not calibrated, so it says nothing" in done.err


def test_a_policy_for_soul_rules_is_refused(workspace: Workspace) -> None:
    text = (
        '[[policies]]\nname = "fast"\ncomponents = ["SOUL"]\ncauses = ["tool_failure"]\n'
        "min_confidence = 0.5\nmin_failures = 2\nper_day = 3\n"
    )
    (workspace.folder / "reflex.toml").write_text(text)
    assert "only a person approves a SOUL rule; take SOUL out" in workspace("review", "auto").refusal


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--skip-bad"], "--skip-bad goes with a FILE"),
        (["--with-children"], "--with-children goes with --agent"),
        (["x.jsonl", "--auto"], "--auto goes without a FILE"),
        (["--days", "-1"], "-1.0 is not in the range"),
        (["--program", "nope.json"], "nope.json: no such program file"),
    ],
)
def test_what_does_not_go_together_is_said(arguments: list[str], said: str, workspace: Workspace) -> None:
    assert said in workspace("propose", *arguments).refusal
