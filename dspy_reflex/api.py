"""A workspace: the loop's verbs on one store, one spool and the rule files that its settings name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dspy_reflex.recorder.recorder import Recorder

if TYPE_CHECKING:
    from pydantic import JsonValue

    from dspy_reflex.config import Settings
    from dspy_reflex.records.diagnosis import Diagnosis
    from dspy_reflex.records.review import FiledProposal, State
    from dspy_reflex.stages.filing import Proposed
    from dspy_reflex.stages.listing import Shown
    from dspy_reflex.stages.policy import Decision
    from dspy_reflex.store.store import Store


class Reflex:
    """Everything that can be done with an agent's failures, from `log` to `revert`.

    Opening it costs nothing: settings are read and the store is opened when a verb needs them, and `log` never does.
    """

    def __init__(self, home: Path | str | None = None, **settings: Any) -> None:
        """Name the workspace.

        Args:
            home: Its folder; None is `REFLEX_HOME`, else `~/.dspy-reflex`.
            settings: Any field of `Settings`, over the settings file and the environment.
        """
        self._said = {"home": home, **settings}

    @cached_property
    def settings(self) -> Settings:
        """What holds here.

        Raises:
            ConfigError: A setting cannot be used.
        """
        from dspy_reflex.config import load_settings

        return load_settings(**self._said)

    @cached_property
    def store(self) -> Store:
        """The store, with everything that was recorded on this machine so far.

        Raises:
            StoreError: It cannot be opened.
        """
        from dspy_reflex.store.ingest import ingest
        from dspy_reflex.store.store import Store

        store = Store(self.settings.store_url)
        ingest(store, self.settings.home)
        return store

    def propose(
        self, *, days: float = 30, agents: Sequence[str] | None = None, include_unsure: bool = False,
        program: Path | None = None, max_usd: float | None = None, concurrency: int = 1,
        tick: Callable[[int], None] = lambda _: None,
    ) -> Proposed:
        """File one rule for each cause and symptom that enough diagnosed failures share, and that no rule answers.

        Args:
            days: How far back failures count.
            agents: Only failures of these agents; None is all.
            include_unsure: Whether failures count whose diagnosis a person should look at first.
            program: The rule program's file; by default the current one for the model.
            max_usd: Most that this may cost.
            concurrency: Questions at a time.
            tick: Told how many questions are answered.

        Raises:
            ProgramError: There is no such program.
            ModelNotConfiguredError: The model's key or address is missing.
        """  # fmt: skip
        from datetime import timedelta

        from dspy_reflex.clock import now
        from dspy_reflex.runtime.program import load_program
        from dspy_reflex.stages.filing import propose_waiting
        from dspy_reflex.stages.waiting import find_waiting

        asked = load_program("rule", path=program, lm=self.settings.lm)
        since = now() - timedelta(days=days)
        found = find_waiting(self.store, self.settings, since=since, agents=agents, include_unsure=include_unsure)
        return propose_waiting(
            self.store, self.settings, asked, found, max_usd=max_usd, concurrency=concurrency, tick=tick
        )

    def proposals(self, *states: State, agents: Sequence[str] | None = None) -> list[FiledProposal]:
        """Proposals in these states, or in any; oldest first.

        Args:
            states: None is any.
            agents: Only proposals for the targets of these agents; None is all.
        """
        from dspy_reflex.stages.listing import proposals_for

        return proposals_for(self.store, self.settings, states or None, agents)

    def proposal(self, proposal_id: str) -> Shown:
        """All there is to know of one proposal, by its id or the beginning of it, and the diff it would make.

        Raises:
            StoreError: There is none, or more than one.
        """
        from dspy_reflex.stages.listing import shown

        return shown(self.store, self.settings, proposal_id)

    def approve(
        self, proposal_id: str, *, by: str, reason: str = "", correction: JsonValue = None, base: str | None = None
    ) -> FiledProposal:
        """Approve a rule as it stands.

        Args:
            proposal_id: Its id, or the beginning of it.
            by: Who decides: a person.
            reason: Why.
            correction: What the agent should have done.
            base: SHA-256 of the rule file that they were shown; None if they were shown none.

        Raises:
            StoreError: There is no such proposal, or it cannot be approved any more.
            ReviewError: The rule does not pass the lint, its file is not what was shown, or nobody is named.
        """
        from dspy_reflex.stages import review

        return review.approve(self.store, proposal_id, review.Act(by, reason, correction, base))

    def edit(
        self, proposal_id: str, rule: str, *, by: str, reason: str = "", correction: JsonValue = None,
        base: str | None = None,
    ) -> FiledProposal:
        """Approve other words for a rule; otherwise as `approve`."""  # fmt: skip
        from dspy_reflex.stages import review

        return review.edit(self.store, proposal_id, rule, review.Act(by, reason, correction, base))

    def reject(self, proposal_id: str, *, by: str, reason: str) -> FiledProposal:
        """Reject a rule; the like of it is not proposed again.

        Raises:
            StoreError: There is no such proposal, or it cannot be rejected any more.
            ReviewError: No reason is given, or nobody is named.
        """
        from dspy_reflex.stages import review

        return review.reject(self.store, proposal_id, review.Act(by, reason))

    def defer(self, proposal_id: str, *, by: str, reason: str = "") -> FiledProposal:
        """Leave a rule for later."""
        from dspy_reflex.stages import review

        return review.defer(self.store, proposal_id, review.Act(by, reason))

    def auto_review(self) -> list[Decision]:
        """Hold pending proposals against the policies of the settings; there are none unless somebody wrote them."""
        from dspy_reflex.stages.policy import decide

        return decide(self.store, self.settings)

    def label(
        self, failure_id: str, root_cause: str, *, by: str, reason: str = "", taxonomy: str = "six"
    ) -> Diagnosis:
        """Say why a failure happened; no program says otherwise afterwards.

        Raises:
            ReviewError: Nobody is named, or there is no such failure.
            TaxonomyError: There is no such taxonomy, or no such cause in it.
        """
        from dspy_reflex.stages.label import label
        from dspy_reflex.stages.review import Act
        from dspy_reflex.taxonomies.load import load_taxonomy

        return label(self.store, failure_id, root_cause, Act(by, reason), load_taxonomy(taxonomy).labels)

    def reviewed_rows(self) -> list[dict[str, Any]]:
        """What people said of diagnoses and rules, as labelled rows for the next compile."""
        from dspy_reflex.stages.examples import reviewed_rows

        return reviewed_rows(self.store)

    def close(self) -> None:
        """Let go of the store and of the spool."""
        for name in ("store", "recorder"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()

    def __enter__(self) -> Reflex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
