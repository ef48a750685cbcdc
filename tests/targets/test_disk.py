"""A file that is replaced stays the same file to everybody else: links, permissions, owner, attributes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.disk import delete, put, read, resolved, stage
from dspy_reflex.targets.intent import Change
from tests.targets.patching import act

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def rewrite(path: Path, content: bytes = b"new") -> None:
    """Replace a file."""
    stage(path, content, "patch_1")
    put(path, "patch_1")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755, 0o4755])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "SOUL.md"
    path.write_bytes(b"old")
    path.chmod(mode)
    rewrite(path)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert [entry.name for entry in tmp_path.iterdir()] == ["SOUL.md"]


def test_a_new_file_has_the_permissions_that_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    rewrite(tmp_path / "SOUL.md")
    assert (tmp_path / "SOUL.md").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "SOUL.md"
    path.write_bytes(b"old")
    os.chown(path, 12, 34)
    path.chmod(0o640)
    rewrite(path)
    there = path.stat()
    assert (there.st_uid, there.st_gid, stat.S_IMODE(there.st_mode)) == (12, 34, 0o640)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "SOUL.md"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    rewrite(path)
    assert os.getxattr(path, "user.note") == b"mine"


def test_links_stay_and_what_they_lead_to_changes(tmp_path: Path) -> None:
    real, near, far = tmp_path / "deep" / "SOUL.md", tmp_path / "near.md", tmp_path / "far.md"
    real.parent.mkdir()
    real.write_bytes(b"old")
    near.symlink_to("deep/SOUL.md")
    far.symlink_to("near.md")
    act(tmp_path, [Change(far, b"old", b"new")], lambda: None, lambda _: True)
    assert far.is_symlink()
    assert near.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_link_to_nowhere_gets_its_file_and_keeps_itself(tmp_path: Path) -> None:
    link = tmp_path / "SOUL.md"
    link.symlink_to("real.md")
    for before, after in ((None, b"new"), (b"new", None)):
        act(tmp_path, [Change(link, before, after)], lambda: None, lambda _: True)
        assert link.is_symlink()
        assert read(tmp_path / "real.md") == after


@pytest.mark.skipif(IS_ROOT, reason="root may write everything")
def test_a_file_that_is_read_only_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "SOUL.md"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(TargetError, match="may not be written"):
        act(tmp_path, [Change(path, b"old", b"new")], lambda: None, lambda _: True)
    assert path.read_bytes() == b"old"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").mkdir()
    os.mkfifo(tmp_path / "TOOLS.md")
    for name in ("SOUL.md", "TOOLS.md"):
        with pytest.raises(TargetError, match=rf"{name} is no regular file"):
            read(tmp_path / name)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TargetError, match="cannot be read"):
        read(resolved(tmp_path / "a"))


def test_no_file_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "SOUL.md") is None
    delete(tmp_path / "SOUL.md")


def test_a_rest_of_an_earlier_attempt_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "SOUL.md"
    stage(path, b"half", "patch_1")
    rewrite(path)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"new"]
