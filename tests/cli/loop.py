"""A workspace with diagnosed failures, for the commands that work on the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_reflex.records.review import FiledProposal
from dspy_reflex.store import proposals
from dspy_reflex.store.store import Store
from tests.cli.runner import Done, Reflex
from tests.stages.loop import known
from tests.store.events import filed

TIMEOUT = {"task": "Send the report.", "actual_outcome": "POST /mail timed out after 30 s."}
RULE = "When a call to a service fails, retry it at most three times, then report the error and stop."
OTHER = "Before a sum is reported, add up every invoice again and compare the two results exactly."


@dataclass(frozen=True)
class Workspace:
    """A home, an agent's folder, and a way to run commands in them."""

    folder: Path
    reflex: Reflex

    @property
    def home(self) -> Path:
        """Where the store is."""
        return self.folder / "home"

    @property
    def agent(self) -> Path:
        """Where the rule files are."""
        return self.folder / "agent"

    def __call__(self, *arguments: object) -> Done:
        """Run a command of the loop here."""
        return self.reflex(*arguments, "--home", self.home)

    def open(self) -> Store:
        """The store itself."""
        return Store(f"sqlite:///{self.home / 'store.db'}")

    def fail(self, n: int = 2, cause: str = "tool_failure", **changed: Any) -> list[str]:
        """Diagnosed failures."""
        with self.open() as store:
            told: dict[str, Any] = TIMEOUT | changed
            return known(store, n, cause, **told)

    def file(self, rule: str = RULE, *ids: str, **changed: Any) -> FiledProposal:
        """A pending proposal."""
        one = filed(*ids, rule=rule).model_copy(update={"file": str(self.agent / "TOOLS.md"), **changed})
        with self.open() as store, store.write() as connection:
            proposals.file(connection, one, actor="propose")
        return one

    def state(self, proposal_id: str) -> str:
        """Where a proposal stands."""
        return self.of(lambda connection: proposals.get(connection, proposal_id).state)

    def of(self, ask: Callable[[Any], Any]) -> Any:
        """What the store says."""
        with self.open() as store, store.read() as connection:
            return ask(connection)
