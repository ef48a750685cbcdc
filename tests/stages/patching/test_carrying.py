"""Files and store agree, whatever is done and whenever a process dies."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspy_reflex.clock import now
from dspy_reflex.config import Settings
from dspy_reflex.errors import ReflexError
from dspy_reflex.records.record import Component
from dspy_reflex.records.review import STANDING
from dspy_reflex.stages.patching.apply import apply
from dspy_reflex.stages.patching.carrying import settle
from dspy_reflex.stages.patching.revert import revert, revert_to
from dspy_reflex.stages.patching.rules import merge, retire
from dspy_reflex.store import audit, proposals
from dspy_reflex.store.store import Store
from dspy_reflex.targets.block import rules_of
from tests.stages.approved import RULES, approve, approved, rule_files, state_of, waiting, workspace
from tests.stages.killed import run_until

ORIGINALS: dict[Component, bytes] = {
    "SOUL": b"\xef\xbb\xbf# Soul\r\n\r\n- Be kind.\r\n",
    "AGENTS": b"# Agents\n\nno final newline \xff",
}
"""TOOLS.md is not there."""
COMPONENTS: tuple[Component, ...] = ("SOUL", "AGENTS", "TOOLS")
MOST_STEPS = 60


def folder_with_files(place: Path) -> Path:
    """Rule files in a folder of their own."""
    folder = Path(mkdtemp(dir=place))
    for component, content in ORIGINALS.items():
        (folder / f"{component}.md").write_bytes(content)
    return folder


def assert_agreement(store: Store, folder: Path) -> None:
    """The rules in the files are those that the store says are in them."""
    with store.read() as connection:
        standing = {(one.file, one.id) for one in proposals.find(connection, STANDING)}
    here = {(file, one) for file, one in standing if Path(file).parent == folder.resolve()}
    files = {folder.resolve() / name: content for name, content in rule_files(folder).items()}
    assert {
        (str(path), rule.rule_id) for path, content in files.items() for rule in rules_of(content, path.name)
    } == here


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.sampled_from(COMPONENTS), min_size=1, max_size=8), draw=st.randoms(use_true_random=False))
def test_files_and_store_agree_after_any_acts_and_all_can_be_undone(
    store: Store, tmp_path: Path, places: list[Component], draw: random.Random
) -> None:
    folder = folder_with_files(tmp_path)
    here = workspace(folder)
    before, start = rule_files(folder), now()
    ids = [waiting(store, folder, rule, component=place).id for rule, place in zip(RULES, places, strict=False)]
    times = [start]
    for _ in range(draw.randint(1, 12)):
        files = rule_files(folder)
        act = draw.choice(ACTS)
        try:
            act(store, here, ids, draw)
        except ReflexError:
            assert rule_files(folder) == files
        assert_agreement(store, folder)
        times.append(now())
    revert_to(store, here, draw.choice(times), by="ada", reason="back a little")
    assert_agreement(store, folder)
    left = [one for one in ids if state_of(store, one) in STANDING]
    while left:
        one = draw.choice(left)
        revert(store, here, one, by="ada", reason="all of it")
        left = [one for one in ids if state_of(store, one) in STANDING]
    assert rule_files(folder) == before


Act = Callable[[Store, Settings, list[str], random.Random], object]


def _approve(store: Store, _: Settings, ids: list[str], draw: random.Random) -> None:
    for one in draw.sample(ids, draw.randint(1, len(ids))):
        if state_of(store, one) == "pending":
            approve(store, one)


def _apply(store: Store, here: Settings, ids: list[str], draw: random.Random) -> None:
    ready = [one for one in ids if state_of(store, one) == "approved"]
    apply(store, here, draw.sample(ready, draw.randint(0, len(ready))), by="ada")


def _revert(store: Store, here: Settings, ids: list[str], draw: random.Random) -> None:
    revert(store, here, draw.choice(ids), by="ada", reason="no")


def _revert_patch(store: Store, here: Settings, ids: list[str], draw: random.Random) -> None:
    with store.read() as connection:
        patches = [patch.id for one in ids for patch in proposals.patches_of(connection, proposal_id=one)]
    if patches:
        revert(store, here, draw.choice(patches), by="ada", reason="no")


def _retire(store: Store, here: Settings, ids: list[str], draw: random.Random) -> None:
    retire(store, here, draw.choice(ids), by="ada", reason="no")


def _merge(store: Store, _: Settings, ids: list[str], draw: random.Random) -> None:
    ids.append(merge(store, draw.choice(ids), draw.choice(ids), "Wait and retry at most thrice.", by="ada").id)


ACTS: tuple[Act, ...] = (_approve, _apply, _apply, _approve, _revert, _revert_patch, _retire, _merge)


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot kill itself in the middle of things there")
@pytest.mark.parametrize("undo", [False, True], ids=["apply", "revert"])
def test_a_process_killed_at_any_step_leaves_all_or_nothing(store: Store, url: str, tmp_path: Path, undo: bool) -> None:
    """The next start finishes or undoes it."""
    outcomes: list[bool] = []
    for step in range(1, MOST_STEPS):
        folder = folder_with_files(tmp_path)
        here, start, original = workspace(folder), now(), rule_files(folder)
        ids = [
            approved(store, folder, rule, component=place).id
            for rule, place in zip(RULES, COMPONENTS[1:], strict=False)
        ]
        if undo:
            apply(store, here, ids, by="ada")
        before = rule_files(folder)
        if not run_until(step, url, here, start if undo else ids):
            break
        recovered = settle(store, here.home)
        assert_agreement(store, folder)
        assert not list((here.home / "patches").glob("*intent*"))
        done = {state_of(store, one) for one in ids} == {"reverted" if undo else "applied"}
        assert done or rule_files(folder) == before
        if recovered:
            with store.read() as connection:
                told = audit.trail(connection, recovered.patch_id)
            assert told[-1].after == ("finished" if done else "undone")
        outcomes.append(done)
        revert_to(store, here, start, by="ada", reason="clean") if undo else apply(store, here, ids, by="ada")
        assert {state_of(store, one) for one in ids} == {"reverted" if undo else "applied"}
        assert (rule_files(folder) == original) == undo
    assert len(outcomes) > 10
    assert outcomes == sorted(outcomes), "once the store has it, it is finished"
    assert set(outcomes) == {False, True}
