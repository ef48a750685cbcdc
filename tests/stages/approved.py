"""Rule files, and approved proposals for them."""

from __future__ import annotations

from pathlib import Path

from dspy_reflex.config import Settings, TargetSettings
from dspy_reflex.ids import new_id
from dspy_reflex.records.record import Component
from dspy_reflex.records.review import FiledProposal, State, approval_hash
from dspy_reflex.stages.proposing.preview import base_of
from dspy_reflex.store import proposals
from dspy_reflex.store.store import Store
from tests.cli.runner import files_below
from tests.store.events import filed

RULES = tuple(
    f"When a call {what}, wait and retry at most three times."
    for what in (
        "is throttled",
        "times out",
        "is refused",
        "breaks off",
        "comes back empty",
        "is slow",
        "hangs",
        "fails",
    )
)


def workspace(folder: Path, **changed: object) -> Settings:
    """Settings with home and rule files in a folder: those of `bot` below `bot`, those of everybody else beside it."""
    for name in ("home", "bot"):
        (folder / name).mkdir(exist_ok=True)
    targets = (TargetSettings(agent="bot", root=folder / "bot"),)
    usual = {"home": folder / "home", "base_dir": folder, "targets": targets}
    return Settings.model_validate(usual | changed)


def waiting(
    store: Store, folder: Path, rule: str = RULES[0], *, component: Component = "TOOLS", agent: str = "*"
) -> FiledProposal:
    """A proposal that nobody has looked at."""
    file = (folder / "bot" if agent == "bot" else folder).resolve() / f"{component}.md"
    one = filed("evt_1", rule=rule)
    body = one.proposal.model_copy(update={"component": component})
    one = one.model_copy(update={"agent_id": agent, "file": str(file), "base": base_of(file), "proposal": body})
    with store.write() as connection:
        proposals.file(connection, one, actor="propose")
    return one


def approve(store: Store, proposal_id: str) -> FiledProposal:
    """What a reviewer does."""
    with store.write() as connection:
        one = proposals.get(connection, proposal_id, lock=True)
        base = base_of(Path(one.file))
        changed = {"base": base, "approval": approval_hash(one.rule, one.file, base)}
        return proposals.move(connection, one, "approved", actor="ada", action="approve", **changed)


def approved(
    store: Store, folder: Path, rule: str = RULES[0], *, component: Component = "TOOLS", agent: str = "*"
) -> FiledProposal:
    """A proposal that may be applied."""
    return approve(store, waiting(store, folder, rule, component=component, agent=agent).id)


def state_of(store: Store, proposal_id: str) -> State:
    """Where a proposal stands."""
    with store.read() as connection:
        return proposals.get(connection, proposal_id).state


def rule_files(folder: Path) -> dict[str, bytes]:
    """Every rule file below a folder, and whatever somebody left beside one."""
    return {name: content for name, content in files_below(folder).items() if ".md" in name}


def unknown(prefix: str) -> str:
    """An id of nothing."""
    return new_id(prefix)
