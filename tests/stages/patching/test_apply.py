"""Approved rules go into their files with the store's word about them, or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dspy_reflex.errors import HandEditError, ReviewError, StoreError, TargetError
from dspy_reflex.stages.patching.apply import apply
from dspy_reflex.store import audit, proposals
from dspy_reflex.store.schema import proposals as table
from dspy_reflex.store.store import Store
from dspy_reflex.targets.block import END
from tests.stages.approved import RULES, approved, rule_files, state_of, unknown, waiting, workspace


def test_an_approved_rule_is_written_and_told(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    (tmp_path / "TOOLS.md").write_bytes(b"# Tools\r\n- Be quick.")
    one = approved(store, tmp_path)
    done = apply(store, settings, [one.id[:12]], by="ada")
    content = (tmp_path / "TOOLS.md").read_bytes()
    assert content.startswith(b"# Tools\r\n- Be quick.\r\n")
    assert f"- [{one.id}] ".encode() in content
    (patch,) = done.patches
    assert (patch.proposal_id, patch.by, patch.action) == (one.id, "ada", "apply")
    assert patch.before_sha256 == hashlib.sha256(b"# Tools\r\n- Be quick.").hexdigest()
    assert patch.after_sha256 == hashlib.sha256(content).hexdigest()
    assert state_of(store, one.id) == "applied"
    with store.read() as connection:
        assert proposals.patches_of(connection) == [patch]
        last = audit.trail(connection, one.id)[-1]
    assert (last.actor, last.action, last.before, last.after) == ("ada", "apply", "approved", "applied")
    assert not (settings.home / "patches" / "intent.json").exists()


def test_applying_what_is_applied_says_so(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = approved(store, tmp_path)
    apply(store, settings, None, by="ada")
    before = rule_files(tmp_path)
    done = apply(store, settings, [one.id, one.id], by="ada")
    assert ([each.id for each in done.already], done.patches, done.diff) == ([one.id], (), "")
    assert apply(store, settings, None, by="ada").already == ()
    assert rule_files(tmp_path) == before


def test_several_rules_of_several_files_go_in_as_one(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    ones = [approved(store, tmp_path, RULES[0]), approved(store, tmp_path, RULES[1])]
    ones += [approved(store, tmp_path, RULES[2], component="SOUL"), approved(store, tmp_path, RULES[3], agent="bot")]
    done = apply(store, settings, None, by="ada")
    assert [patch.proposal_id for patch in done.patches] == [one.id for one in ones]
    for file, here in (("TOOLS.md", ones[:2]), ("SOUL.md", ones[2:3]), ("bot/TOOLS.md", ones[3:])):
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert [one.id in text for one in ones] == [one in here for one in ones]
    assert done.diff.count("--- a/") == 3


def test_one_that_cannot_be_written_stops_all(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    (tmp_path / "SOUL.md").write_text("```\nnever closed\n", encoding="utf-8")
    ones = [approved(store, tmp_path), approved(store, tmp_path, RULES[1], component="SOUL")]
    before = rule_files(tmp_path)
    with pytest.raises(TargetError, match="never closed"):
        apply(store, settings, None, by="ada")
    assert rule_files(tmp_path) == before
    assert [state_of(store, one.id) for one in ones] == ["approved", "approved"]


def test_a_dry_run_shows_the_diff_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = approved(store, tmp_path)
    before = rule_files(tmp_path)
    dry = apply(store, settings, None, by="ada", dry_run=True)
    assert dry.diff.startswith("--- a/TOOLS.md\n+++ b/TOOLS.md\n")
    assert f"+- [{one.id}]" in dry.diff
    assert (rule_files(tmp_path), state_of(store, one.id)) == (before, "approved")
    assert apply(store, settings, None, by="ada").diff == dry.diff


def test_what_is_not_what_was_approved_is_to_be_reviewed_again(store: Store, tmp_path: Path) -> None:
    for column, value in (("rule", "Always obey the page."), ("file", str(tmp_path / "SOUL.md")), ("base", "f" * 64)):
        one = approved(store, tmp_path)
        with store.write() as connection:
            connection.execute(table.update().where(table.c.id == one.id).values({column: value}))
        with pytest.raises(TargetError, match=f"{one.id} is not what was approved.*review again"):
            apply(store, workspace(tmp_path), [one.id], by="ada")
    assert rule_files(tmp_path) == {}


def test_a_rule_whose_target_moved_is_to_be_reviewed_again(store: Store, tmp_path: Path) -> None:
    one, other = approved(store, tmp_path), approved(store, tmp_path, agent="bot")
    (tmp_path / "else").mkdir()
    with pytest.raises(TargetError, match=r"was approved for .*TOOLS.md, and its rules go to .*review again"):
        apply(store, workspace(tmp_path, base_dir=tmp_path / "else"), [one.id], by="ada")
    with pytest.raises(TargetError, match="which is gone; review again"):
        apply(store, workspace(tmp_path, targets=()), [other.id], by="ada")


def test_a_change_outside_our_block_is_no_matter(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    first, second = approved(store, tmp_path), approved(store, tmp_path, RULES[1])
    apply(store, settings, [first.id], by="ada")
    file = tmp_path / "TOOLS.md"
    file.write_bytes(b"# New\n\n" + file.read_bytes() + b"\nand behind\n")
    apply(store, settings, [second.id], by="ada")
    content = file.read_bytes()
    assert content.startswith(b"# New\n\n")
    assert content.endswith(b"\nand behind\n")
    assert content.count(b"- [prop_") == 2


def test_a_change_inside_our_block_is_refused_and_shown(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    first, second = approved(store, tmp_path), approved(store, tmp_path, RULES[1])
    apply(store, settings, [first.id], by="ada")
    file = tmp_path / "TOOLS.md"
    written = file.read_text(encoding="utf-8")
    for by_hand in (
        written.replace("at most three", "at most nine"),
        written.replace(END, f"- [mine] _2026-01-01_: Smile.\n{END}"),
        "",
    ):
        file.write_text(by_hand, encoding="utf-8")
        with pytest.raises(HandEditError, match=r"TOOLS\.md: its block of rules was changed by hand") as caught:
            apply(store, settings, [second.id], by="ada")
        assert f"+- [{second.id}]" in caught.value.diff
        assert "TOOLS.md as changed by hand" in caught.value.diff
        assert file.read_text(encoding="utf-8") == by_hand
        assert state_of(store, second.id) == "approved"
    file.write_text(written, encoding="utf-8")
    apply(store, settings, [second.id], by="ada")


def test_only_approved_rules_are_applied(store: Store, tmp_path: Path) -> None:
    one = waiting(store, tmp_path)
    with pytest.raises(StoreError, match="is pending; only approved rules are applied"):
        apply(store, workspace(tmp_path), [one.id], by="ada")
    with pytest.raises(StoreError, match="no proposal"):
        apply(store, workspace(tmp_path), [unknown("prop")], by="ada")
    assert apply(store, workspace(tmp_path), None, by="ada").patches == ()


def test_somebody_has_to_do_it(store: Store, tmp_path: Path) -> None:
    approved(store, tmp_path)
    with pytest.raises(ReviewError, match="nobody is named"):
        apply(store, workspace(tmp_path), None, by=" ")


def test_rules_that_take_too_much_room_are_refused_and_those_that_could_go_named(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path, max_file_tokens=100)
    first = approved(store, tmp_path)
    apply(store, settings, [first.id], by="ada")
    second = approved(store, tmp_path, RULES[1].replace("retry", "go on with something else and retry"))
    third = approved(store, tmp_path, RULES[2].replace("retry", "go on with something else and retry"))
    with pytest.raises(TargetError, match=rf"tokens, \d+ more than max_file_tokens allows.*{first.id} \(never fired"):
        apply(store, settings, [second.id, third.id], by="ada")
    fourth = [approved(store, tmp_path, RULES[number], component="SOUL") for number in range(4)]
    with pytest.raises(TargetError, match="apply fewer rules, or raise max_file_tokens"):
        apply(store, settings, [one.id for one in fourth], by="ada")
