"""Diagnosed failures in, proposals out: one for each mechanism, not one for each failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dspy_reflex.errors import RefusalError
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.runtime.answer import Answer
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.asking.batch import Batch, Meter, run_batch


@dataclass(frozen=True)
class Group:
    """Failures that share a root cause and a symptom."""

    root_cause: str
    symptom: str
    failures: tuple[Failure, ...]


def grouped(failures: Sequence[Failure], causes: Sequence[str | None], symptoms: Sequence[str]) -> list[Group]:
    """Group failures by (root cause, symptom), in order of first appearance; those without a cause are left out."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for failure, cause, symptom in zip(failures, causes, symptoms, strict=False):
        if cause is not None:
            groups.setdefault((cause, symptom), []).append(failure)
    return [Group(cause, symptom, tuple(found)) for (cause, symptom), found in groups.items()]


def merged(proposals: Sequence[Proposal]) -> list[Proposal]:
    """One proposal for each rule: where groups got the same, their failures are put together."""
    found: dict[str, Proposal] = {}
    for one in proposals:
        same = found.get(one.id)
        ids = dict.fromkeys([*(same.failure_ids if same else ()), *one.failure_ids])
        found[one.id] = one.model_copy(update={"failure_ids": tuple(ids)})
    return list(found.values())


def propose(
    program: RuleProgram,
    groups: Sequence[Group],
    existing_rules: Sequence[str],
    *,
    meter: Meter,
    concurrency: int = 1,
    tick: Callable[[int], None] = lambda _: None,
) -> Batch[Proposal | RefusalError]:
    """Propose a rule for each group; where the model gave no usable rule, the result says why.

    An outage or a spent budget ends the batch early; the batch says so and keeps what is done. Costs are added to `meter`.
    """

    def one(group: Group) -> tuple[Proposal | RefusalError, Answer]:
        return program.explained(group.failures, group.root_cause, existing_rules)

    return run_batch(groups, one, meter=meter, concurrency=concurrency, tick=tick)
