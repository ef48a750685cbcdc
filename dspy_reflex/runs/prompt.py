"""What compiling did to the prompt: the instruction before and after, and the demos."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dspy_reflex.runs.folder import Run
from dspy_reflex.runs.pages.blocks import Diff
from dspy_reflex.runtime.artifact import Artifact


@dataclass(frozen=True)
class Demo:
    """One example in the prompt."""

    id: str | None
    """Of its row; None if nobody knows."""
    label: str | None
    worked: bool
    """Whether a model worked out its answer; otherwise it is shown as people labelled it."""


def demos_of(program: Artifact | None) -> tuple[Demo, ...]:
    """The demos of a program, in the order of the prompt."""
    found = program.data["demos"] if program else ()
    return tuple(
        Demo(demo.get("id"), demo["values"].get("root_cause"), bool(demo.get("bootstrapped"))) for demo in found
    )


def coverage(run: Run) -> Mapping[str, int]:
    """How many demos each label has, labels without one included."""
    if run.result.coverage or run.program is None:
        return run.result.coverage
    counts = Counter(demo.label for demo in demos_of(run.program))
    return {label: counts[label] for label in run.program.labels}


def instruction_diff(before: Artifact | None, after: Artifact | None, names: tuple[str, str]) -> Diff | None:
    """The instruction of one program against that of another; None if one of the two is not there."""
    if before is None or after is None:
        return None
    return Diff.of(before.data["instructions"], after.data["instructions"], names)
