"""Whose rules go where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.config import TargetSettings
from dspy_reflex.errors import TargetError
from dspy_reflex.targets.where import rule_file, target_of

PARENTS = {"clerk": "desk", "desk": "house", "guest": "street", "snake": "tail", "tail": "snake"}


def target(agent: str, root: str = "", **more: Any) -> TargetSettings:
    """A target whose root says which one it is."""
    return TargetSettings(agent=agent, root=Path(root or agent), **more)


@pytest.mark.parametrize(
    ("agent", "root"),
    [
        ("support-eu", "first"),
        ("support", "default"),
        ("Support-eu", "default"),
        ("house", "under"),
        ("desk", "under"),
        ("clerk", "under"),
        ("guest", "default"),
        ("street", "alone"),
        ("snake", "default"),
        ("", "default"),
    ],
)
def test_the_first_target_that_matches_counts(agent: str, root: str) -> None:
    targets = [
        target("support-*", "first"),
        target("support-eu", "second"),
        target("street", "alone"),
        target("house", "under", with_children=True),
    ]
    assert target_of(agent, targets, Path("default"), PARENTS).root == Path(root)


def test_without_a_hierarchy_there_are_no_children() -> None:
    assert target_of("clerk", [target("house", with_children=True)], Path("default")).root == Path("default")


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("abcd")), st.sampled_from("abcd"))
def test_any_hierarchy_ends(parents: dict[str, str], agent: str) -> None:
    found = target_of(agent, [target("a", with_children=True)], Path("default"), parents)
    reached, one = {agent}, agent
    while (one := parents.get(one, agent)) not in reached:
        reached.add(one)
    assert (found.root == Path("a")) == ("a" in reached)


def test_everybody_has_the_three_files_of_the_base_folder(tmp_path: Path) -> None:
    everybody = target_of("anyone", [], tmp_path)
    found = [rule_file(everybody, component) for component in ("SOUL", "AGENTS", "TOOLS")]
    assert [(each.path, each.name, each.section) for each in found] == [
        (tmp_path.resolve() / name, name, None) for name in ("SOUL.md", "AGENTS.md", "TOOLS.md")
    ]


def test_components_of_one_file_have_sections(tmp_path: Path) -> None:
    one = target("*", str(tmp_path), files={"SOUL": "SOUL.md", "AGENTS": "CLAUDE.md", "TOOLS": "CLAUDE.md"})
    assert [rule_file(one, component).section for component in ("SOUL", "AGENTS", "TOOLS")] == [None, "AGENTS", "TOOLS"]


def test_a_link_from_one_file_to_the_other_makes_them_one(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Mine\n")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    one = target("*", str(tmp_path), files={"AGENTS": "AGENTS.md", "TOOLS": "CLAUDE.md"})
    agents, tools = rule_file(one, "AGENTS"), rule_file(one, "TOOLS")
    assert agents.path == tools.path == tmp_path.resolve() / "CLAUDE.md"
    assert (agents.name, agents.section, tools.section) == ("AGENTS.md", "AGENTS", "TOOLS")


def test_a_component_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no file for TOOLS"):
        rule_file(target("*", str(tmp_path), files={"SOUL": "SOUL.md"}), "TOOLS")


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such folder"):
        rule_file(target("*", str(tmp_path / "nowhere")), "SOUL")


@pytest.mark.parametrize(
    "name",
    ["../SOUL.md", "a/../../SOUL.md", "a/../in.md", "/SOUL.md", ".", "out/SOUL.md", "SOUL.md", "gone.md", "loop.md"],
)
def test_a_file_stays_below_its_root(tmp_path: Path, name: str) -> None:
    """By whatever way it would leave: dots, an absolute name, a folder or file that is a symbolic link."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "SOUL.md").touch()
    (root / "out").symlink_to(outside)
    (root / "SOUL.md").symlink_to(outside / "SOUL.md")
    (root / "gone.md").symlink_to(outside / "gone.md")
    (root / "loop.md").symlink_to("loop.md")
    one = target("*", str(root), files={"SOUL": str(tmp_path / "outside/SOUL.md") if name == "/SOUL.md" else name})
    if name == "loop.md":
        assert rule_file(one, "SOUL").path == root.resolve() / "loop.md"
        return
    with pytest.raises(TargetError, match="is outside of"):
        rule_file(one, "SOUL")


def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "SOUL.md").symlink_to("deep/SOUL.md")
    found = rule_file(target("*", str(tmp_path / "link")), "SOUL")
    assert found.path == tmp_path.resolve() / "real" / "deep" / "SOUL.md"
