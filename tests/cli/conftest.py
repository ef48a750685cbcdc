"""What the tests of the command line share: a runner in an empty folder, rows, and programs compiled once."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.loop import Workspace
from tests.cli.runner import Reflex, in_process
from tests.optimize.compiles import quick, small_set, write_rows
from tests.optimize.thinking import pointed_at


@pytest.fixture
def reflex(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_empty_folder: Path) -> Reflex:
    """Run a command in an empty folder."""
    del in_empty_folder
    return in_process(monkeypatch, capsys)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small set: train, val, test."""
    return small_set(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture(scope="session")
def library(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with both programs, compiled on the small set; only to be read."""
    place = tmp_path_factory.mktemp("library")
    quick(place / "cause", small)
    quick(place / "rule", small, "rule")
    (place / "cause" / "out" / "root_cause").rename(place / "root_cause")
    (place / "rule" / "out" / "rule").rename(place / "rule-program")
    return place


def only(folder: Path) -> Path:
    """The program of a folder with one."""
    (found,) = (path for path in folder.glob("*.json") if path.name != "current.json")
    return found


@pytest.fixture(scope="session")
def cause(library: Path) -> Path:
    """The artefact of the root-cause program."""
    return only(library / "root_cause")


@pytest.fixture(scope="session")
def rule(library: Path) -> Path:
    """The artefact of the rule program."""
    return only(library / "rule-program")


@pytest.fixture(scope="session")
def failures(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test rows of the small set as a logger has them: no labels."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in (small / "test.jsonl").read_text().splitlines()]
    names = ("id", "agent_id", "task", "expected_outcome", "actual_outcome", "severity", "context")
    bare = [{name: row[name] for name in names} for row in rows]
    return write_rows(tmp_path_factory.mktemp("failures") / "failures.jsonl", bare)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """Start a server that thinks, and point a model's provider at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture
def workspace(reflex: Reflex, tmp_path: Path) -> Workspace:
    """A home with a store, and an agent's folder with one rule file."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "TOOLS.md").write_text("# Tools\n- Use the staging channel for tests.\n", encoding="utf-8")
    (tmp_path / "reflex.toml").write_text('base_dir = "agent"\n', encoding="utf-8")
    return Workspace(tmp_path, reflex)
