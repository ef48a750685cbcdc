"""From paths to rows that can be used, with everything that people should know said on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.checks.run import QUICK, findings
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.evalset.leave_out import leave_out
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.records.taxonomy import Taxonomy

Say = Callable[[str], None]
"""Takes one line for people."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Several data sets, ready to use."""

    sets: tuple[EvalSet, ...]
    warnings: tuple[str, ...]
    """What was odd about them; said already."""

    @property
    def name(self) -> str:
        """The names of the sets, joined by a plus sign."""
        return "+".join(one.name for one in self.sets)


def collect(
    paths: Sequence[Path],
    taxonomy: Taxonomy,
    say: Say,
    *,
    left_out: Iterable[tuple[str, str]] = (),
    skip_bad: bool = False,
) -> Collected:
    """Read data sets, leave out what is not wanted, and say what is odd.

    Args:
        paths: Folders or files.
        taxonomy: What the labels are checked against.
        say: Is told the warnings, one a line.
        left_out: Field and value of rows to leave out (see `leave_out`).
        skip_bad: Leave out rows that cannot be used, and say which, instead of stopping.

    Raises:
        DatasetError: A row cannot be used and is not to be skipped, or nothing is left.
    """
    skipped = Problems()
    sets = [load_evalset(path, taxonomy, skipped if skip_bad else None) for path in paths]
    if skipped.found and not any(rows for one in sets for rows in one.splits.values()):
        raise DatasetError(f"no row can be used, {len(skipped.found)} problems; first: {skipped.found[0]}")
    chosen = leave_out(sets, left_out)
    warnings = [f"skipped {line}" for line in skipped.in_order]
    warnings += [f"{skipped.places} lines were skipped"] if skipped.found else []
    warnings += [f"{found.where}: {found.text}" for one in chosen for found in findings(one, QUICK)]
    for line in warnings:
        say(f"warning: {line}")
    return Collected(tuple(chosen), tuple(warnings))
