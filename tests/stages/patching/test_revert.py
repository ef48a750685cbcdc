"""What went in comes out again, to the byte, and whoever is in the way is named."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from dspy_reflex.clock import now
from dspy_reflex.errors import HandEditError, ReviewError, StoreError, TargetError
from dspy_reflex.stages.patching.apply import apply
from dspy_reflex.stages.patching.revert import revert, revert_to
from dspy_reflex.stages.patching.rules import merge, retire
from dspy_reflex.store import audit, proposals
from dspy_reflex.store.store import Store
from tests.stages.approved import RULES, approve, approved, rule_files, state_of, unknown, waiting, workspace


def test_a_revert_gives_back_the_bytes_and_is_a_lesson(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    (tmp_path / "TOOLS.md").write_bytes(b"\xef\xbb\xbf# Tools\r\n\xff no end")
    before = rule_files(tmp_path)
    one = approved(store, tmp_path)
    applied = apply(store, settings, None, by="ada")
    done = revert(store, settings, one.id[:12], by="ben", reason="too slow")
    assert rule_files(tmp_path) == before
    (patch,) = done.patches
    assert (patch.action, patch.before_sha256, patch.after_sha256) == (
        "revert", applied.patches[0].after_sha256, applied.patches[0].before_sha256,
    )  # fmt: skip
    assert state_of(store, one.id) == "reverted"
    with store.read() as connection:
        (lesson,) = proposals.lessons_on(connection, "tool_failure", "rate_limit")
        last = audit.trail(connection, one.id)[-1]
    assert (lesson.kind, lesson.proposal_id, lesson.reason) == ("reverted", one.id, "too slow")
    assert (last.actor, last.action, last.reason, last.after) == ("ben", "revert", "too slow", "reverted")


def test_reverting_what_is_reverted_changes_nothing(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = approved(store, tmp_path)
    (patch,) = apply(store, settings, None, by="ada").patches
    revert(store, settings, patch.id, by="ada", reason="no")
    for undone in (patch.id, one.id):
        again = revert(store, settings, undone, by="ada", reason="no")
        assert (again.patches, again.diff) == ((), "")
    with store.read() as connection:
        assert len(proposals.lessons_on(connection, "tool_failure", "rate_limit")) == 1


def test_a_dry_run_of_a_revert_changes_nothing(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = approved(store, tmp_path)
    apply(store, settings, None, by="ada")
    before = rule_files(tmp_path)
    assert f"-- [{one.id}]" in revert(store, settings, one.id, by="ada", reason="no", dry_run=True).diff
    assert (rule_files(tmp_path), state_of(store, one.id)) == (before, "applied")


def test_a_patch_that_others_build_on_is_refused_and_they_are_named(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    first, second = approved(store, tmp_path), approved(store, tmp_path, RULES[1])
    patch, _ = apply(store, settings, None, by="ada").patches
    before = rule_files(tmp_path)
    merged = approve(store, merge(store, first.id, second.id, RULES[2], by="ada").id)
    (merging,) = apply(store, settings, None, by="ada").patches
    assert [state_of(store, one.id) for one in (first, second, merged)] == ["reverted", "reverted", "applied"]
    for undone in (first.id, patch.id):
        with pytest.raises(TargetError, match=f"{patch.id} cannot be reverted: {merging.id} changed rule {first.id}"):
            revert(store, settings, undone, by="ada", reason="no")
    revert(store, settings, merged.id, by="ada", reason="it said too little")
    assert rule_files(tmp_path) == before
    assert [state_of(store, one.id) for one in (first, second, merged)] == ["applied", "applied", "reverted"]
    revert(store, settings, patch.id, by="ada", reason="no")
    assert state_of(store, first.id) == "reverted"
    with store.read() as connection:
        lessons = proposals.lessons_on(connection, "tool_failure", "rate_limit")
    assert [(one.proposal_id, one.kind) for one in lessons] == [(merged.id, "reverted"), (first.id, "reverted")]


def test_what_was_retired_comes_back_by_reverting_that(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = approved(store, tmp_path)
    apply(store, settings, None, by="ada")
    before = rule_files(tmp_path)
    (patch,) = retire(store, settings, one.id, by="ada", reason="not needed").patches
    assert rule_files(tmp_path) == {}
    revert(store, settings, patch.id, by="ada", reason="it is")
    assert (rule_files(tmp_path), state_of(store, one.id)) == (before, "applied")


def test_all_files_go_back_to_what_they_were_at_a_time(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    (tmp_path / "SOUL.md").write_bytes(b"# Soul\n")
    start = now()
    old = [approved(store, tmp_path, RULES[number]) for number in range(3)]
    apply(store, settings, None, by="ada")
    then, before = now(), rule_files(tmp_path)
    merged = merge(store, old[0].id, old[1].id, RULES[3], by="ada")
    new = [
        approve(store, merged.id),
        approved(store, tmp_path, RULES[4], component="SOUL"),
        approved(store, tmp_path, RULES[5], agent="bot"),
    ]
    apply(store, settings, None, by="ada")
    retire(store, settings, old[2].id, by="ada", reason="not needed")
    revert(store, settings, new[1].id, by="ada", reason="no")
    done = revert_to(store, settings, then, by="ada", reason="all wrong")
    assert rule_files(tmp_path) == before
    assert [state_of(store, one.id) for one in old] == ["applied"] * 3
    assert [state_of(store, one.id) for one in new] == ["reverted"] * 3
    assert len(done.patches) == 5
    assert revert_to(store, settings, then, by="ada", reason="again").patches == ()
    revert_to(store, settings, start - timedelta(days=1), by="ada", reason="everything")
    assert rule_files(tmp_path) == {"SOUL.md": b"# Soul\n"}


def test_a_change_by_hand_is_refused_and_one_that_is_what_was_wanted_is_taken(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    (tmp_path / "TOOLS.md").write_bytes(b"# Tools\n")
    one = approved(store, tmp_path)
    apply(store, settings, None, by="ada")
    file = tmp_path / "TOOLS.md"
    written = file.read_bytes()
    file.write_bytes(written.replace(b"three", b"nine"))
    with pytest.raises(HandEditError) as caught:
        revert(store, settings, one.id, by="ada", reason="no")
    assert "nine" in caught.value.diff
    file.write_bytes(b"# Tools\n")
    revert(store, settings, one.id, by="ada", reason="I took it out myself")
    assert (file.read_bytes(), state_of(store, one.id)) == (b"# Tools\n", "reverted")


def test_what_was_never_in_a_file_cannot_be_reverted(store: Store, tmp_path: Path) -> None:
    settings = workspace(tmp_path)
    one = waiting(store, tmp_path)
    with pytest.raises(StoreError, match="is pending and was never in a file"):
        revert(store, settings, one.id, by="ada", reason="no")
    for prefix, what in (("patch", "no patch"), ("prop", "no proposal")):
        with pytest.raises(StoreError, match=what):
            revert(store, settings, unknown(prefix), by="ada", reason="no")
    with pytest.raises(ReviewError, match="nobody is named"):
        revert_to(store, settings, now(), by="", reason="no")
