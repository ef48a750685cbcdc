"""`dspy-reflex apply`, `diff`, `revert`, `rules` and `verify`."""

from __future__ import annotations

import re
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.store.store import Store
from tests.cli.runner import Reflex
from tests.stages.approved import RULES, approve, approved, rule_files, state_of, waiting
from tests.stages.killed import run_until
from tests.stages.standing import applied, days_after, days_before, happened


@pytest.fixture
def folder(reflex: Reflex) -> Path:
    """The current folder, with settings for everybody."""
    del reflex
    Path("reflex.toml").write_text('home = "home"\nbase_dir = "."\n', encoding="utf-8")
    return Path.cwd()


@pytest.fixture
def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Store]:
    """The store of that folder's settings."""
    monkeypatch.delenv("REFLEX_HOME")
    with Store(f"sqlite:///{folder / 'home' / 'store.db'}") as store:
        yield store


def test_a_rule_goes_in_and_out(reflex: Reflex, folder: Path, opened: Store) -> None:
    one = approved(opened, folder)
    shown = reflex("diff")
    assert shown.out.startswith("--- a/TOOLS.md\n+++ b/TOOLS.md\n")
    assert reflex("apply", "--all", "--dry-run").out == shown.out
    assert rule_files(folder) == {}
    done = reflex("apply", one.id[:14], "--by", "ada")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"apply {one.id}  {folder / 'TOOLS.md'}  patch_")
    assert reflex("apply", one.id).out == f"{one.id} is in {folder / 'TOOLS.md'} already\n"
    listed = reflex("rules", "list")
    assert f"{one.id}  applied  since {now():%Y-%m-%d}  1 failures before, 0 like them since\n" in listed.out
    assert f"-- [{one.id}]" in reflex("revert", one.id, "--reason", "no", "--dry-run").out
    done = reflex("revert", one.id, "--reason", "it made things worse")
    assert done.out.startswith(f"revert {one.id}  ")
    assert rule_files(folder) == {}
    again = reflex("revert", one.id, "--reason", "again")
    assert (again.code, again.out) == (0, "")
    assert "undone before" in again.err
    assert "no rules are in files" in reflex("rules", "list").err
    assert "nothing is approved" in reflex("apply", "--all").err
    told = [line["action"] for line in reflex("history", one.id, "--json").json["history"]]
    assert told == ["propose", "approve", "apply", "revert"]


def test_json_is_all_there_is_on_stdout(reflex: Reflex, folder: Path, opened: Store) -> None:
    first, second = approved(opened, folder), approved(opened, folder, RULES[1])
    assert reflex("diff", "--json").json["diff"].count("+- [") == 2
    dry = reflex("apply", "--all", "--dry-run", "--json").json
    done = reflex("apply", "--all", "--by", "ada", "--json").json
    assert dry["diff"] == done["diff"]
    assert [(one["proposal_id"], one["by"]) for one in done["patches"]] == [(first.id, "ada"), (second.id, "ada")]
    assert reflex("apply", first.id, "--json").json == {"patches": [], "diff": "", "already": [first.id]}
    (one, _) = reflex("rules", "list", "--json").json["rules"]
    assert (one["id"], one["state"], one["recurred"]) == (first.id, "applied", 0)
    (verdict, _) = reflex("verify", "--json").json["verdicts"]
    assert (verdict["proposal_id"], verdict["verdict"], verdict["state"]) == (first.id, "too few", "applied")
    merged = reflex("rules", "merge", first.id, second.id, "--rule", RULES[2], "--by", "ada", "--json").json
    assert (merged["state"], merged["proposal"]["replaces"]) == ("pending", [first.id, second.id])
    approve(opened, merged["id"])
    diff = reflex("apply", merged["id"], "--json").json["diff"]
    assert (diff.count("\n-- ["), diff.count("\n+- [")) == (2, 1)
    assert (
        reflex("rules", "retire", merged["id"], "--reason", "gone", "--json").json["patches"][0]["action"] == "retire"
    )
    assert len(reflex("revert", "--to", "2020-01-01", "--reason", "all", "--json").json["patches"]) == 0


def test_rules_are_retired_and_merged(reflex: Reflex, folder: Path, opened: Store) -> None:
    first, second = approved(opened, folder), approved(opened, folder, RULES[1])
    reflex("apply", "--all")
    merged = reflex("rules", "merge", first.id, second.id, "--rule", RULES[2])
    assert merged.out.endswith(f" is pending: {RULES[2]}\n")
    assert reflex("rules", "retire", first.id, "--reason", "gone").out.startswith(f"retire {first.id}")
    assert "it is out already" in reflex("rules", "retire", first.id, "--reason", "gone").err
    assert [line.split()[0] for line in reflex("rules", "list").out.splitlines()[::3]] == [second.id]


def test_all_files_go_back_to_a_day(reflex: Reflex, folder: Path, opened: Store) -> None:
    ones = [approved(opened, folder), approved(opened, folder, RULES[1], component="SOUL")]
    reflex("apply", "--all")
    done = reflex("revert", "--to", f"{now() - timedelta(days=1):%Y-%m-%d}", "--reason", "a bad day")
    assert len(done.out.splitlines()) == 2
    assert [state_of(opened, one.id) for one in ones] == ["reverted", "reverted"]
    assert rule_files(folder) == {}


def test_rules_changed_by_hand_are_shown_and_refused(reflex: Reflex, folder: Path, opened: Store) -> None:
    first, second = approved(opened, folder), approved(opened, folder, RULES[1])
    reflex("apply", first.id)
    file = folder / "TOOLS.md"
    file.write_text(file.read_text(encoding="utf-8").replace("three", "nine\x1b[2J"), encoding="utf-8")
    for arguments in (
        ("apply", second.id),
        ("diff",),
        ("revert", first.id, "--reason", "no"),
        ("apply", "--all", "--json"),
    ):
        done = reflex(*arguments)
        assert "TOOLS.md: its block of rules was changed by hand" in done.refusal
        assert "+++ TOOLS.md as changed by hand" in done.err
        assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("apply",), "give IDs of proposals, or --all"),
        (("apply", "prop_1", "--all"), "give IDs of proposals, or --all"),
        (("apply", "prop_1"), "no proposal of this id"),
        (("apply", "--all", "--by", ""), "nobody is named"),
        (("revert", "--reason", "no"), "give the ID of a proposal or patch, or --to"),
        (("revert", "prop_1", "--to", "2026-01-01", "--reason", "no"), "give the ID of a proposal or patch, or --to"),
        (("revert", "prop_1"), "Missing option '--reason'"),
        (("revert", "--to", "yesterday", "--reason", "no"), "is no time"),
        (("revert", "patch_1", "--reason", "no"), "no patch of this id"),
        (("rules", "retire", "prop_1", "--reason", "no"), "no proposal of this id"),
        (("rules", "merge", "prop_1", "prop_2", "--rule", "x"), "no proposal of this id"),
        (("verify", "prop_1"), "no proposal of this id"),
        (("verify", "--days", "0"), "0 is not in the range"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    reflex: Reflex, opened: Store, arguments: tuple[str, ...], said: str
) -> None:
    del opened
    assert said in reflex(*arguments).refusal


def test_what_was_not_approved_is_not_applied(reflex: Reflex, folder: Path, opened: Store) -> None:
    one = waiting(opened, folder)
    assert f"{one.id} is pending; only approved rules are applied" in reflex("apply", one.id).refusal


def test_whether_rules_helped(reflex: Reflex, opened: Store) -> None:
    one = applied(opened)
    early = reflex("verify").out
    assert "nothing was recorded in that time before it" in early
    assert re.search(r"^  10\.0 days before and after \d{4}-\d\d-\d\d \d\d:\d\d UTC$", early, re.MULTILINE)
    happened(opened, days_before(400), failed=4)
    happened(opened, days_after(150))
    found = reflex("verify", one.id)
    assert found.out.startswith(f"{one.id}  applied  too few\n  {one.rule}\n")
    assert "  before 10.0 per 1,000 [3.9, 25.4], 4 of 400 outcomes\n" in found.out
    assert "  about 450 more outcomes would show whether it ends these failures\n" in found.out
    assert "  looked at 2 times: a verdict on one look errs in 1 of 20 rules that change nothing" in found.out
    assert "stays applied and is not kept: too few" in reflex("verify", one.id, "--keep", "--by", "ada").refusal
    happened(opened, days_before(300), failed=30)
    happened(opened, days_after(30), failed=1, cause=None)
    kept = reflex("verify", "--keep", "--by", "ada")
    assert kept.out.startswith(f"{one.id}  kept  helped\n")
    assert "  1 failures are not diagnosed and count against any verdict" in kept.out
    assert reflex("history", one.id, "--json").json["history"][-1]["actor"] == "ada"


def test_bursts_are_said(reflex: Reflex, opened: Store) -> None:
    applied(opened)
    happened(opened, days_before(400))
    happened(opened, [days_before(400)[200] + timedelta(seconds=1 + place) for place in range(20)], failed=20)
    happened(opened, days_after(400))
    assert "  failures come in bursts: " in reflex("verify").out


def test_what_a_killed_process_left_is_settled_at_the_next_start(reflex: Reflex, folder: Path, opened: Store) -> None:
    settings = Settings(home=folder / "home", base_dir=folder)
    one = approved(opened, folder)
    said: list[str] = []
    for step in range(6, 60):
        if not run_until(step, settings.store_url, settings, [one.id]):
            break
        said.append(reflex("diff").err)
        (state,) = {state_of(opened, one.id)}
        assert (state == "applied") == (f"- [{one.id}]".encode() in rule_files(folder).get("TOOLS.md", b""))
        if state == "applied":
            break
    assert any("it is undone now" in each for each in said)
