"""REFLEX's README walked through with ours: what it promises, command by command, and its Python example.

REFLEX (github.com/veyanoir/reflex) logs, analyzes, proposes, reviews and applies. Where it says «edit proposals.json by
hand», there is a command here; what it does not have is tested elsewhere.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dspy_reflex import Reflex, load_taxonomy
from dspy_reflex.cli.main import cli

ULID = "[0-9A-HJKMNP-TV-Z]{26}"
LOG = (
    "log", "--agent", "veya", "--task", "Send morning briefing", "--expected", "Delivered by 7:00 AM",
    "--actual", "Telegram API returned 429, no retry, delivered at 7:43 AM", "--severity", "high",
    "--context", '{"tool": "telegram", "error": "429 Too Many Requests"}',
)  # fmt: skip
"""Its first command, but for the program's name."""
FAILURES = 8
"""As many as its example analyzes."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's folder, and a home of one's own, set as REFLEX has it."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "TOOLS.md").write_text("# Tools\n")
    monkeypatch.setenv("REFLEX_BASE_DIR", str(tmp_path / "workspace"))
    monkeypatch.setenv("REFLEX_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "workspace"


def run(*words: str) -> str:
    """What a command prints; it has to succeed."""
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_its_commands_one_by_one(workspace: Path) -> None:
    # reflex log --agent veya --task … --context '{…}'
    ids = [run(*LOG).strip() for _ in range(FAILURES)]
    assert all(re.fullmatch(f"evt_{ULID}", one) for one in ids), "an id, and never twice the same one"
    assert len(set(ids)) == FAILURES

    # reflex analyze --days 7
    analyzed = run("analyze", "--days", "7")
    assert "tool_failure" in analyzed
    assert f"{FAILURES} (100.0%)" in analyzed, "the distribution"
    assert "high" in analyzed

    # reflex propose
    proposed = run("propose")
    proposal = re.search(f"prop_{ULID}", proposed)
    assert proposal
    assert "+++ b/TOOLS.md" in proposed, "a diff"

    # reflex review --status pending
    listed = run("review", "list", "--status", "pending")
    assert proposal[0] in listed
    assert "tool_failure" in listed

    # «Edit ~/.reflex/proposals.json: set "status": "approved"»
    run("review", "approve", proposal[0], "--by", "ada", "--reason", "a retry would have helped")

    # reflex apply --id PROP-3A9F1C
    before = (workspace / "TOOLS.md").read_bytes()
    applied = run("apply", proposal[0], "--by", "ada")
    assert str(workspace / "TOOLS.md") in applied
    text = (workspace / "TOOLS.md").read_text()
    assert re.search(rf"- \[{proposal[0]}\] _\d{{4}}-\d\d-\d\d_: \w", text), "id, day and rule, as there"

    # its backup file is our `revert`
    run("revert", proposal[0], "--by", "ada", "--reason", "to see that it can be undone")
    assert (workspace / "TOOLS.md").read_bytes() == before


def test_its_python_example(workspace: Path) -> None:
    with Reflex(
        base_dir=workspace, propose={"min_failures": 1}
    ) as reflex:  # logger, analyzer, proposer, approver, patcher
        event = reflex.log(
            agent_id="my-agent",
            task="fetch user data",
            expected_outcome="JSON response with user profile",
            actual_outcome="Connection timeout after 30s",
            severity="high",
            context={"endpoint": "/api/users/42", "timeout_ms": 30000},
        )
        results = reflex.diagnose(days=7)  # read_since, analyze_batch
        assert [one.diagnosis.failure_id for one in results.made] == [event]
        stats = reflex.status().causes  # summary_stats
        assert sum(stats.values()) == 1
        proposals = reflex.propose(include_unsure=True).filed  # propose_from_batch, add_many
        for proposal in proposals:
            reflex.approve(proposal.id, by="ada")
        result = reflex.apply(by="ada")  # list_approved, apply, mark_applied
        assert len(result.patches) == len(proposals) == 1
        assert proposals[0].rule in Path(proposals[0].file).read_text()


def test_its_six_categories_and_three_components_are_ours(workspace: Path) -> None:
    assert set(load_taxonomy("six").labels) == {
        "reasoning_error", "knowledge_gap", "tool_failure", "instruction_ambiguity", "context_loss", "overconfidence",
    }  # fmt: skip


def test_its_log_file_is_taken_in(workspace: Path, tmp_path: Path) -> None:
    row = {
        "event_id": "EVT-A1B2C3D4", "timestamp": "2026-03-06T12:00:00", "agent_id": "veya", "task": "Send morning briefing",
        "expected_outcome": "Delivered by 7:00 AM", "actual_outcome": "429", "severity": "high", "context": {"tool": "telegram"},
    }  # fmt: skip
    (tmp_path / "failures.jsonl").write_text(json.dumps(row) + "\n")
    run("failures", "import", str(tmp_path / "failures.jsonl"))
    assert "EVT-A1B2C3D4" in run("failures", "list", "--json")


def test_its_demo_is_ours_on_ten_failures_of_our_own(workspace: Path) -> None:
    told = json.loads(run("demo", "loop", "--json"))
    assert told["restored"] is True
    assert told["proposals"]
    assert told["patched"]
    printed = run("demo", "loop")
    assert "as before, byte for byte" in printed
    assert "NOT as before" not in printed
