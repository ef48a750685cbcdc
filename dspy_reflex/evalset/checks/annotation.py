"""Labels that contradict their own row: quotes that are not there, two first choices, votes that nobody weighed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure
from dspy_reflex.untrusted import quoted_in


def evidence(evalset: EvalSet) -> Iterator[Finding]:
    """Evidence must occur word for word, or it teaches programs to make quotes up."""
    for row in _rows(evalset):
        texts = [*row.inputs.values(), *_leaves(row.failure.model_dump())]
        for quote in row.evidence:
            if not any(quote in text or quoted_in(quote, text) for text in texts):
                yield Finding(
                    "evidence",
                    "error",
                    row.where,
                    f"evidence {quote[:60]!r} is not in the text; quote it word for word",
                )


def choices(evalset: EvalSet) -> Iterator[Finding]:
    """The same label as first and second choice."""
    for row in _rows(evalset):
        if row.root_cause in row.also_acceptable:
            yield Finding("choices", "error", row.where, f"{row.root_cause} is also its own alternative; leave it out")


def undecided(evalset: EvalSet) -> Iterator[Finding]:
    """Annotators who differ, and nobody has said who is right."""
    for row in _rows(evalset):
        voted = sorted({vote.root_cause or "nothing" for vote in row.votes})
        if len(voted) > 1 and not row.adjudication:
            text = f"annotators differ ({', '.join(voted)}); decide it with `dspy-reflex data adjudicate`"
            yield Finding("undecided", "warning", row.where, text)


def _rows(evalset: EvalSet) -> Iterator[LabelledFailure]:
    for rows in evalset.splits.values():
        yield from rows


def _leaves(value: object) -> Iterator[str]:
    """Every text in a nested value, as it was before it was laid out for a prompt."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast("dict[str, object]", value).values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            yield from _leaves(item)
