"""Failures that wait for a rule in, filed proposals out: one rule for each mechanism, none that was there before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dspy_reflex.config import Settings, TargetSettings
from dspy_reflex.errors import RefusalError, TargetError
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.runtime.answer import Answer
from dspy_reflex.runtime.inputs import MAX_FAILURES
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.asking.batch import Batch, run_batch
from dspy_reflex.stages.asking.money import meter_of_today, spend
from dspy_reflex.stages.proposing.drafts import Question, drafted, file_drafts
from dspy_reflex.stages.proposing.preview import existing_rules
from dspy_reflex.stages.proposing.waiting import Found, Skipped, Waiting
from dspy_reflex.store import refusals
from dspy_reflex.store.outcomes import failures_of
from dspy_reflex.store.refusals import Refusal
from dspy_reflex.store.store import Store


@dataclass(frozen=True)
class Proposed:
    """What came of it."""

    filed: tuple[FiledProposal, ...]
    skipped: tuple[Skipped, ...]
    unsure: int
    """Failures left out because a person should look at their diagnosis first."""
    undiagnosed: int
    """Failures of which nothing is said yet."""
    batch: Batch[Proposal | RefusalError]
    """Costs, and why some were not asked about."""
    warning: str
    """What is wrong with running this program on this model; empty if nothing is."""


def propose_waiting(
    store: Store,
    settings: Settings,
    program: RuleProgram,
    found: Found,
    *,
    max_usd: float | None = None,
    concurrency: int = 1,
) -> Proposed:
    """Ask for a rule against each mechanism that waits, and file what may be filed.

    What the program has said for nothing before is looked at once more instead. An outage or a spent budget ends it
    early; what was answered is filed.

    Raises:
        ConfigError: There is a limit to what it may cost, and the model's price is not known.
    """
    questions, unanswerable = _questions(store, program, found.waiting)

    def ask(question: Question) -> tuple[Proposal | RefusalError, Answer]:
        return program.explained(question.shown, question.waiting.mechanism.root_cause, question.existing)

    meter = meter_of_today(store, settings, program.model.name, max_usd)
    new = [one for one in questions if one.remembered is None]
    batch = run_batch(new, ask, meter=meter, concurrency=concurrency)
    told = [(one, one.remembered) for one in questions if one.remembered is not None]
    drafts, unusable = drafted([*told, *zip((new[place] for place in batch.answered), batch.done, strict=True)])
    with store.write() as connection:
        spend(connection, program.model.name, batch)
        filed, kept_back = file_drafts(connection, drafts)
        refused = [*unusable, *kept_back]
        for one in refused:
            if one.former is None:
                refusals.keep(connection, one.kept(program))
    skipped = (*found.skipped, *unanswerable, *(one.skipped for one in refused))
    return Proposed(filed, skipped, found.unsure, found.undiagnosed, batch, program.warning)


def _questions(store: Store, program: RuleProgram, waiting: Sequence[Waiting]) -> tuple[list[Question], list[Skipped]]:
    """What can be asked, and what cannot: causes that the program does not know, files that cannot be read."""
    questions: list[Question] = []
    skipped: list[Skipped] = []
    rules = {one.mechanism.agent_id: _rules_of(one.target) for one in _one_each(waiting)}
    with store.read() as connection:
        formers = refusals.of_program(connection, program.artifact.name, program.model.name)
        for one in waiting:
            existing = rules[one.mechanism.agent_id]
            if isinstance(existing, TargetError):
                skipped.append(one.skipped(str(existing)))
            elif one.mechanism.root_cause not in program.artifact.labels:
                skipped.append(one.skipped(f"{program.artifact.name} does not know this cause"))
            else:
                ids = [failure.failure_id for failure in one.failures[:MAX_FAILURES]]
                former = _former(one, formers)
                questions.append(Question(one, tuple(failures_of(connection, ids)), existing, former))
    return questions, skipped


def _former(waiting: Waiting, formers: Iterable[Refusal]) -> Refusal | None:
    """What the program has said about all of these failures before; None if one is new to it."""
    of, ids = waiting.mechanism, {one.failure_id for one in waiting.failures}
    mine = (one for one in formers if (one.agent_id, one.root_cause) == (of.agent_id, of.root_cause))
    return next((one for one in mine if ids.issubset(one.failure_ids)), None)


def _one_each(waiting: Sequence[Waiting]) -> Iterable[Waiting]:
    """One of each target."""
    return {one.mechanism.agent_id: one for one in waiting}.values()


def _rules_of(target: TargetSettings) -> Mapping[str, str] | TargetError:
    """The rules in a target's files, or why they cannot be read."""
    try:
        return existing_rules(target)
    except TargetError as error:
        return error
