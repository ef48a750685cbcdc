"""Whose rules go where: agent to root folder, component to file.

The first target of the settings that matches an agent counts; behind them all stands one for everybody, the base folder
with its SOUL.md, AGENTS.md and TOOLS.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from dspy_reflex.config import TargetSettings
from dspy_reflex.errors import TargetError
from dspy_reflex.records.record import Component
from dspy_reflex.targets.disk import resolved


@dataclass(frozen=True)
class RuleFile:
    """A file that rules of a component go to."""

    path: Path
    """The file itself, symbolic links resolved; it need not be there."""
    name: str
    """As the settings call it, below the root."""
    section: Component | None
    """The section for the component, where the file holds several; None where it holds one."""


def target_of(
    agent: str, targets: Sequence[TargetSettings], base_dir: Path, parents: Mapping[str, str] | None = None
) -> TargetSettings:
    """The target of an agent.

    Args:
        agent: Its id.
        targets: Those of the settings, in order.
        base_dir: Folder of the rule files of everybody else.
        parents: Agent to the agent that it works for; a cycle in it ends the search and is no error.
    """
    line = list(_line(agent, parents or {}))
    for target in targets:
        if any(fnmatchcase(one, target.agent) for one in (line if target.with_children else line[:1])):
            return target
    return TargetSettings(root=base_dir)


def agents_of(
    pattern: str,
    agents: Iterable[str],
    targets: Sequence[TargetSettings],
    base_dir: Path,
    parents: Mapping[str, str] | None = None,
) -> list[str]:
    """The agents whose target has this pattern, the other way round from `target_of`."""
    return [one for one in agents if target_of(one, targets, base_dir, parents).agent == pattern]


def rule_file(target: TargetSettings, component: Component) -> RuleFile:
    """Where the rules of a component go.

    Two components of one file, be it by name or by symbolic link, have a section each.

    Raises:
        TargetError: The target has no file for the component, its root is no folder, or the file is outside of it.
    """
    if component not in target.files:
        raise TargetError(f"{target.root} has no file for {component}; name one under `files` of that target")
    paths = {each: _inside(target.root, name) for each, name in target.files.items()}
    shared = list(paths.values()).count(paths[component]) > 1
    return RuleFile(paths[component], target.files[component], component if shared else None)


def _line(agent: str, parents: Mapping[str, str]) -> Iterator[str]:
    """An agent, the one it works for, and so on."""
    seen = set[str]()
    one: str | None = agent
    while one is not None and one not in seen:
        yield one
        seen.add(one)
        one = parents.get(one)


def _inside(root: Path, name: str) -> Path:
    """A file below a root, with symbolic links resolved; one that leads out of the resolved root is refused."""
    folder = resolved(root)
    if not folder.is_dir():
        raise TargetError(f"{root}: no such folder; a target's root is where the agent's rule files are")
    path = resolved(folder / name)
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts or folder not in path.parents:
        raise TargetError(f"{root / name} is outside of {root}; rules are only written below a target's root")
    return path
