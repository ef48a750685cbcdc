"""A workspace: the loop's verbs on one store, one spool and the rule files that its settings name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from dspy_reflex.recorder.recorder import Recorder
from dspy_reflex.stages.recording.log import failure_event, success_event

if TYPE_CHECKING:
    from pydantic import JsonValue

    from dspy_reflex.config import Settings
    from dspy_reflex.finetune.folder import Written
    from dspy_reflex.finetune.plan import Plan
    from dspy_reflex.finetune.tables import TrainingRows
    from dspy_reflex.records.diagnosis import Diagnosis
    from dspy_reflex.records.review import AuditLine, FiledProposal, State
    from dspy_reflex.stages.diagnosing.stored import Stored
    from dspy_reflex.stages.overview.doctor import Check
    from dspy_reflex.stages.overview.failures import Listed
    from dspy_reflex.stages.overview.failures import Shown as ShownFailure
    from dspy_reflex.stages.overview.status import Status
    from dspy_reflex.stages.patching.apply import Applied
    from dspy_reflex.stages.patching.revert import Reverted
    from dspy_reflex.stages.patching.standing import Rule
    from dspy_reflex.stages.proposing.filing import Proposed
    from dspy_reflex.stages.recording.transfer import Imported
    from dspy_reflex.stages.reviewing.listing import Shown
    from dspy_reflex.stages.reviewing.policy import Decision
    from dspy_reflex.stages.reviewing.review import Several
    from dspy_reflex.stages.verifying.verify import Checked
    from dspy_reflex.store.store import Store
    from dspy_reflex.targets.files import Recovered


class Reflex:
    """Everything that can be done with an agent's failures, from `log` to `revert`.

    Opening it costs nothing: settings are read and the store is opened when a verb needs them, and `log` never does.
    """

    recovered: Recovered | None = None
    """What a process that died had left half done in rule files; finished or undone as the store was opened."""

    def __init__(self, home: Path | str | None = None, **settings: Any) -> None:
        """Name the workspace.

        Args:
            home: Its folder; None is `REFLEX_HOME`, else `~/.dspy-reflex`.
            settings: Any field of `Settings`, over the settings file and the environment.
        """
        self._said: dict[str, Any] = {"home": home, **settings}

    @cached_property
    def recorder(self) -> Recorder:
        """This process's way into the spool. It looks at no settings file: `home` is the argument or `REFLEX_HOME`."""
        return Recorder(_spool_home(self._said["home"]))

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
        """The store, with everything that was recorded on this machine so far, and rule files that agree with it.

        Raises:
            StoreError: It cannot be opened.
            TargetError: A process that died left rule files half written, and somebody changed them since.
        """
        from dspy_reflex.stages.patching.carrying import settle
        from dspy_reflex.store.store import Store

        store = Store(self.settings.store_url)
        self.recovered = settle(store, self.settings.home)
        self._take_in(store)
        return store

    def log(
        self, agent_id: str, task: str, expected_outcome: object = None, actual_outcome: object = None,
        severity: str = "medium", context: object = None, parent_agent_id: str | None = None,
    ) -> str:  # fmt: skip
        """Record a failure. Nothing is raised and nothing is waited for; secrets are taken out before it is written.

        Args:
            agent_id: Who failed.
            task: What it was asked to do.
            expected_outcome: What should have come out.
            actual_outcome: What came out.
            severity: `low`, `medium`, `high` or `critical`; anything else counts as `medium`, and the context says so.
            context: Any object.
            parent_agent_id: The agent that it works for.

        Returns:
            The failure's id, also if it could not be written: `recorder.lost` counts those.
        """
        told = (expected_outcome, actual_outcome, severity, context, parent_agent_id)
        return self.recorder.record(failure_event(agent_id, task, *told))

    def succeeded(self, agent_id: str, task: str | None = None, parent_agent_id: str | None = None) -> str:
        """Record a good outcome, which failures are counted against; as `log`."""
        return self.recorder.record(success_event(agent_id, task, parent_agent_id))

    def diagnose(
        self, *, days: float = 7, since: datetime | None = None, agents: Sequence[str] | None = None,
        program: Path | None = None, max_usd: float | None = None, concurrency: int = 1,
        tick: Callable[[int], None] = lambda _: None,
    ) -> Stored:  # fmt: skip
        """Diagnose the failures that this version of the program has not diagnosed yet.

        Args:
            days: How far back failures count.
            since: The same as a time, in its place.
            agents: Only failures of these agents; None is all.
            program: Artefact; the current one for the model by default.
            max_usd: Most that this may cost.
            concurrency: Questions at a time.
            tick: Told how many diagnoses were made so far.

        Raises:
            ProgramError: There is no program for the model.
            ModelNotConfiguredError: The model's key or address is missing.
        """
        from dspy_reflex.clock import now
        from dspy_reflex.runtime.program import load_program
        from dspy_reflex.stages.diagnosing.stored import Wanted, diagnose_stored

        self._take_in(self.store)
        fallback = self.settings.fallback
        wanted = Wanted(since or now() - timedelta(days=days), None if agents is None else tuple(agents))
        return diagnose_stored(
            self.store, self.settings, load_program("root_cause", path=program, lm=self.settings.lm), wanted,
            fallback=(lambda: load_program("root_cause", lm=fallback)) if fallback else None,
            max_usd=max_usd, concurrency=concurrency, tick=tick,
        )  # fmt: skip

    def propose(
        self,
        *,
        days: float = 30,
        agents: Sequence[str] | None = None,
        include_unsure: bool = False,
        program: Path | None = None,
        max_usd: float | None = None,
        concurrency: int = 1,
    ) -> Proposed:
        """File one rule for each cause and symptom that enough diagnosed failures share, and that no rule answers.

        Args:
            days: How far back failures count.
            agents: Only failures of these agents; None is all.
            include_unsure: Whether failures count whose diagnosis a person should look at first.
            program: The rule program's file; by default the current one for the model.
            max_usd: Most that this may cost.
            concurrency: Questions at a time.

        Raises:
            ProgramError: There is no such program.
            ModelNotConfiguredError: The model's key or address is missing.
        """  # fmt: skip
        from datetime import timedelta

        from dspy_reflex.clock import now
        from dspy_reflex.runtime.program import load_program
        from dspy_reflex.stages.proposing.filing import propose_waiting
        from dspy_reflex.stages.proposing.waiting import find_waiting

        asked = load_program("rule", path=program, lm=self.settings.lm)
        since = now() - timedelta(days=days)
        found = find_waiting(self.store, self.settings, since=since, agents=agents, include_unsure=include_unsure)
        return propose_waiting(self.store, self.settings, asked, found, max_usd=max_usd, concurrency=concurrency)

    def proposals(self, *states: State, agents: Sequence[str] | None = None) -> list[FiledProposal]:
        """Proposals in these states, or in any; oldest first.

        Args:
            states: None is any.
            agents: Only proposals for the targets of these agents; None is all.
        """
        from dspy_reflex.stages.reviewing.listing import proposals_for

        return proposals_for(self.store, self.settings, states or None, agents)

    def proposal(self, proposal_id: str) -> Shown:
        """All there is to know of one proposal, by its id or the beginning of it, and the diff it would make.

        Raises:
            StoreError: There is none, or more than one.
        """
        from dspy_reflex.stages.reviewing.listing import shown

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
        from dspy_reflex.stages.reviewing import review

        return review.approve(self.store, proposal_id, review.Act(by, reason, correction, base))

    def approve_all(self, proposal_ids: Sequence[str], *, by: str, reason: str = "") -> Several:
        """Approve each of these as it stands; what cannot be approved does not stop the others.

        Raises:
            ReviewError: Nobody is named.
        """
        from dspy_reflex.stages.reviewing import review

        return review.approve_all(self.store, proposal_ids, review.Act(by, reason))

    def edit(
        self,
        proposal_id: str,
        rule: str,
        *,
        by: str,
        reason: str = "",
        correction: JsonValue = None,
        base: str | None = None,
    ) -> FiledProposal:
        """Approve other words for a rule; otherwise as `approve`."""  # fmt: skip
        from dspy_reflex.stages.reviewing import review

        return review.edit(self.store, proposal_id, rule, review.Act(by, reason, correction, base))

    def reject(self, proposal_id: str, *, by: str, reason: str) -> FiledProposal:
        """Reject a rule; the like of it is not proposed again.

        Raises:
            StoreError: There is no such proposal, or it cannot be rejected any more.
            ReviewError: No reason is given, or nobody is named.
        """
        from dspy_reflex.stages.reviewing import review

        return review.reject(self.store, proposal_id, review.Act(by, reason))

    def defer(self, proposal_id: str, *, by: str, reason: str = "") -> FiledProposal:
        """Leave a rule for later."""
        from dspy_reflex.stages.reviewing import review

        return review.defer(self.store, proposal_id, review.Act(by, reason))

    def auto_review(self) -> list[Decision]:
        """Hold pending proposals against the policies of the settings; there are none unless somebody wrote them."""
        from dspy_reflex.stages.reviewing.policy import decide

        return decide(self.store, self.settings)

    def apply(self, proposal_ids: Sequence[str] | None = None, *, by: str, dry_run: bool = False) -> Applied:
        """Write approved rules into their files: all of these, or none.

        Args:
            proposal_ids: Their ids, or the beginnings of them; None is all that are approved.
            by: Who does it.
            dry_run: Whether only to say what would change.

        Raises:
            StoreError: There is no such proposal, or it is not approved.
            TargetError: A rule is not what was approved, its file cannot be written, or rules would take too much room.
            HandEditError: Somebody changed our rules by hand; its `diff` shows how.
        """
        from dspy_reflex.stages.patching.apply import apply

        return apply(self.store, self.settings, proposal_ids, by=by, dry_run=dry_run)

    def diff(self) -> str:
        """What applying everything approved would change, as a unified diff."""
        return self.apply(by="diff", dry_run=True).diff

    def revert(self, undone: str | datetime, *, by: str, reason: str, dry_run: bool = False) -> Reverted:
        """Undo a patch, to the byte, or everything that was done to rule files since a time.

        Args:
            undone: Id of a proposal whose rule is to go, or of a patch; or a time with a zone.
            by: Who does it.
            reason: Why; it is what the next proposal learns from.
            dry_run: Whether only to say what would change.

        Raises:
            StoreError: There is no such patch or proposal, or its rule was never in a file.
            TargetError: A later patch depends on it; says which. Or a file cannot be written.
            HandEditError: Somebody changed our rules by hand; its `diff` shows how.
        """
        from dspy_reflex.stages.patching.revert import revert, revert_to

        if isinstance(undone, str):
            return revert(self.store, self.settings, undone, by=by, reason=reason, dry_run=dry_run)
        return revert_to(self.store, self.settings, undone, by=by, reason=reason, dry_run=dry_run)

    def rules(self, agents: Sequence[str] | None = None) -> list[Rule]:
        """The rules that are in files, oldest first: of the targets of these agents, or of all."""
        from dspy_reflex.stages.patching.rules import standing_rules

        return standing_rules(self.store, self.settings, agents)

    def retire(self, proposal_id: str, *, by: str, reason: str) -> Reverted:
        """Take a rule out that is no longer needed. That is no lesson: should its failures come back, so may it."""
        from dspy_reflex.stages.patching.rules import retire

        return retire(self.store, self.settings, proposal_id, by=by, reason=reason)

    def merge(self, first_id: str, second_id: str, rule: str, *, by: str) -> FiledProposal:
        """Propose one rule in place of two; after review and `apply` the two go out as it comes in."""
        from dspy_reflex.stages.patching.rules import merge

        return merge(self.store, first_id, second_id, rule, by=by)

    def verify(self, proposal_id: str | None = None, *, days: int = 28, keep_by: str | None = None) -> list[Checked]:
        """Hold the failures that rules are against, per 1,000 outcomes, before and after, against each other.

        Args:
            proposal_id: A rule's proposal, or the beginning of its id; None is all rules in files.
            days: Longest time to look at on either side.
            keep_by: Who keeps the rules that helped for good; None keeps none.

        Raises:
            StoreError: There is no such rule in a file, or it was to be kept and did not help.
        """
        from dspy_reflex.stages.verifying.verify import verify

        return verify(self.store, self.settings, proposal_id, days=days, keep_by=keep_by)

    def label(self, failure_id: str, root_cause: str, *, by: str, reason: str = "", taxonomy: str = "six") -> Diagnosis:
        """Say why a failure happened; no program says otherwise afterwards.

        Raises:
            ReviewError: Nobody is named, or there is no such failure.
            TaxonomyError: There is no such taxonomy, or no such cause in it.
        """
        from dspy_reflex.stages.diagnosing.label import label
        from dspy_reflex.stages.reviewing.review import Act
        from dspy_reflex.taxonomies.load import load_taxonomy

        return label(self.store, failure_id, root_cause, Act(by, reason), load_taxonomy(taxonomy).labels)

    def reviewed_rows(self) -> list[dict[str, Any]]:
        """What people said of diagnoses and rules, as labelled rows for the next compile."""
        from dspy_reflex.stages.reviewing.examples import reviewed_rows

        return reviewed_rows(self.store)

    def export(
        self,
        out: Path,
        *,
        form: str = "trl",
        plan: Plan | None = None,
        eval_sets: Sequence[Path] = (),
        new_since: Path | None = None,
        licence: str = "other",
        dry_run: bool = False,
    ) -> Written:
        """Write approved rules, with their failures and corrections, as training rows; without any, nothing.

        Args:
            out: Folder; an earlier export there is replaced as a whole.
            form: One of `dspy_reflex.finetune.formats.registry.NAMES`.
            plan: What is wanted; None is everything.
            eval_sets: Folders whose val and test failures no row may hold, beside the bundled one.
            new_since: Another export, whose rows are left out.
            licence: What the rows may be used for.
            dry_run: Count only.

        Raises:
            DatasetError: An eval set cannot be read.
            ExportError: There is no such format, or a folder is no export of ours or cannot be written.
            StoreError: There is no rule that the plan names.
        """  # fmt: skip
        from dspy_reflex.finetune.formats.registry import format_of
        from dspy_reflex.finetune.plan import Plan
        from dspy_reflex.stages.export import export, guard_for

        return export(
            self.store, plan or Plan(), guard_for(eval_sets), format_of(form), out,
            licence=licence, new_since=new_since, dry_run=dry_run,
        )  # fmt: skip

    def training_rows(self, plan: Plan | None = None, *, eval_sets: Sequence[Path] = ()) -> TrainingRows:
        """The same rows in memory, for pandas or Hugging Face's `datasets`.

        Raises:
            DatasetError: An eval set cannot be read.
            StoreError: There is no rule that the plan names.
        """
        from dspy_reflex.finetune.plan import Plan
        from dspy_reflex.finetune.tables import TrainingRows
        from dspy_reflex.stages.export import guard_for, training_rows

        return TrainingRows(tuple(training_rows(self.store, plan or Plan(), guard_for(eval_sets))))

    def status(self, *, since: datetime | None = None, agents: Sequence[str] | None = None) -> Status:
        """How things stand, from counts alone: of whole days since then, and of these agents."""
        from dspy_reflex.stages.overview.status import status

        return status(self.store, since=since, agents=agents)

    def failures(self, **wanted: Any) -> tuple[Listed, ...]:
        """Failures with what is said of them, newest first; `wanted` are fields of `store.outcomes.Query`."""
        from dspy_reflex.stages.overview.failures import list_failures
        from dspy_reflex.store.outcomes import Query

        return list_failures(self.store, Query(**wanted))

    def failure(self, failure_id: str) -> ShownFailure:
        """One failure, what is said of it, and the rules it stands behind; a StoreError if there is none, or no more."""
        from dspy_reflex.stages.overview.failures import show_failure

        return show_failure(self.store, failure_id)

    def import_failures(self, stream: BinaryIO, name: str) -> Imported:
        """Take in a file of JSON Lines, REFLEX's or one of `export_failures`; given again, it changes nothing."""
        from dspy_reflex.stages.recording.transfer import import_lines

        return import_lines(self.store, stream, name)

    def export_failures(self, **wanted: Any) -> Iterator[bytes]:
        """Failures as lines of JSON with REFLEX's keys, newest first; arguments as of `failures`."""
        from dspy_reflex.stages.recording.transfer import exported
        from dspy_reflex.store.outcomes import Query

        return exported(self.store, Query(**wanted))

    def prune(self, days: int | None = None, *, by: str) -> int:
        """Remove outcomes older than so many days, by default the setting `retention_days`; counts stay.

        Raises:
            ConfigError: Neither says how many days.
        """
        from dspy_reflex.stages.overview.keep import prune

        return prune(self.store, days or self.settings.retention_days, actor=by)

    def forget(self, failure_id: str, *, by: str, reason: str) -> None:
        """Take a failure and all that was said of it out of the store for good.

        Raises:
            StoreError: There is no such failure.
        """
        from dspy_reflex.stages.overview.keep import forget

        forget(self.store, failure_id, actor=by, reason=reason)

    def history(self, subject: str) -> tuple[AuditLine, ...]:
        """Who did what to a proposal, a failure or, as `store`, to all of it; oldest first."""
        from dspy_reflex.stages.overview.keep import history

        return history(self.store, subject)

    def doctor(self) -> tuple[Check, ...]:
        """Look whether everything the loop rests on is well."""
        from dspy_reflex.stages.overview.doctor import checkup

        return checkup(self.settings.home.expanduser(), lambda: self.store, lambda: self.recorder)

    def _take_in(self, store: Store) -> None:
        """What was recorded here; a settings file may name another home than the recorder, which reads none."""
        from dspy_reflex.store.ingest import ingest

        for home in {self.settings.home.expanduser().absolute(), _spool_home(self._said["home"])}:
            ingest(store, home)

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


def _spool_home(told: Path | str | None) -> Path:
    """Where the recorder writes. Where there is no such place, nothing can be written, and that is counted, not raised."""
    try:
        return Path(told or os.environ.get("REFLEX_HOME") or "~/.dspy-reflex").expanduser().absolute()
    except (RuntimeError, OSError):
        return Path(os.devnull) / "home"
