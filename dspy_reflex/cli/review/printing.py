"""A proposal on the screen, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.review import FiledProposal, Review
    from dspy_reflex.stages.reviewing.listing import Shown

CHARS = 400
"""What is shown of each text of a failure."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def as_object(shown: Shown) -> dict[str, Any]:
    """Everything about a proposal."""
    return {
        **shown.proposal.model_dump(mode="json"),
        "diff": shown.preview.diff if shown.preview else "",
        "problem": shown.problem,
        "failures": [
            {**one.failure.model_dump(mode="json"), "evidence": list(one.diagnosis.evidence)} for one in shown.failures
        ],
        "reviews": [one.model_dump(mode="json") for one in shown.reviews],
    }


def lines_of(proposal: FiledProposal) -> list[str]:
    """A proposal without its diff."""
    program = proposal.proposal
    told = [
        f"{proposal.id}  {proposal.state}  {program.root_cause} / {proposal.symptom}  {proposal.severity}  "
        f"confidence {proposal.confidence:.0%}",
        f"  rule   {proposal.rule}",
        f"  why    {program.rationale}",
        f"  by     {program.program} on {program.model}; {program.score}",
        f"  for    {', '.join(program.failure_ids)}",
        f"  file   {proposal.file} ({program.component}; agents {proposal.agent_id})",
    ]
    return [neutralise(line).replace("\n", " ") for line in told]


def print_proposal(shown: Shown) -> None:
    """A proposal and its diff, as `propose` shows them."""
    for line in lines_of(shown.proposal):
        click.echo(line)
    click.echo()
    print_diff(shown)
    click.echo()


def diff_of(shown: Shown) -> str:
    """The diff, or why there is none."""
    return neutralise(shown.preview.diff if shown.preview else shown.problem)


def print_diff(shown: Shown, *, stderr: bool = False) -> None:
    """The diff, in colour on a terminal."""
    print_lines(diff_of(shown), stderr=stderr)


def print_lines(diff: str, *, stderr: bool = False) -> None:
    """The lines of a diff that may be shown, in colour on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    for line in diff.splitlines():
        console.print(Text(line, COLOURS.get(line[:1], "")))


def evidence_of(shown: Shown) -> list[str]:
    """The failures that a rule was made from, with the quotes that decided their cause."""
    told: list[str] = []
    for one in shown.failures:
        failure = one.failure
        told.append(f"failure {failure.id}  {failure.at:%Y-%m-%d}  {failure.severity}  {failure.agent_id}")
        told += [
            f"  {name:<9}{_short(text)}" for name, text in (("task", failure.task), ("outcome", failure.actual_outcome))
        ]
        told += [f"  quote    {_short(quote)}" for quote in one.diagnosis.evidence]
    return [neutralise(line).replace("\n", " ") for line in told]


def said_of(review: Review) -> str:
    """One review as a line."""
    what = f"{review.at:%Y-%m-%d %H:%M}  {review.action}  by {review.by}"
    edited = f"  instead of: {review.before}" if review.action == "edit" else ""
    return neutralise(f"{what}  {review.reason}{edited}").replace("\n", " ").rstrip()


def _short(text: str) -> str:
    return text if len(text) <= CHARS else f"{text[:CHARS]}…"
