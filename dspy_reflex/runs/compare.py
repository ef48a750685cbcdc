"""Two runs side by side: what was asked for differently, what came of it, and what it cost. Second minus first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from dspy_reflex.runs.document import SAME, demo_table, score_text
from dspy_reflex.runs.folder import Run
from dspy_reflex.runs.pages.blocks import Block, Diff, Document, Section, Table, Text
from dspy_reflex.runs.paired import Paired, pair
from dspy_reflex.runs.prompt import Demo, demos_of, instruction_diff
from dspy_reflex.runs.result import Score


@dataclass(frozen=True)
class Cost:
    """What both spent."""

    first: float | None
    second: float | None
    ratio: float | None
    """Second by first; None if one is not known, or the first is 0."""


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side."""

    names: tuple[str, str]
    options: dict[str, tuple[str | None, str | None]]
    """Options that differ; None where a run does not have one."""
    scores: tuple[Score, Score]
    paired: Paired | None
    """None if they have no predictions on the same rows."""
    instruction: Diff | None
    """None if one of the programs was not kept."""
    demos_only_first: tuple[Demo, ...]
    demos_only_second: tuple[Demo, ...]
    cost: dict[str, Cost]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "runs": list(self.names),
            "options": {name: list(values) for name, values in self.options.items()},
            "scores": [score.model_dump(mode="json", exclude={"uncompiled"}) for score in self.scores],
            "paired": asdict(self.paired) if self.paired else None,
            "instruction_diff": list(self.instruction.lines) if self.instruction else None,
            "demos": {
                "only_first": [asdict(demo) for demo in self.demos_only_first],
                "only_second": [asdict(demo) for demo in self.demos_only_second],
            },
            "cost": {name: asdict(cost) for name, cost in self.cost.items()},
        }


def compare(first: Run, second: Run) -> Comparison:
    """Hold the second run against the first.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    names = (str(first.folder), str(second.folder))
    mine, theirs = demos_of(first.program), demos_of(second.program)
    return Comparison(
        names=names,
        options=_options(first, second),
        scores=(first.result.scores, second.result.scores),
        paired=pair(first.predictions, second.predictions),
        instruction=instruction_diff(first.program, second.program, names),
        demos_only_first=_but(mine, theirs),
        demos_only_second=_but(theirs, mine),
        cost=_cost(first, second),
    )


def comparison_document(found: Comparison) -> Document:
    """A comparison, to be shown."""
    sections = [
        Section("Options that differ", tuple(_option_blocks(found))),
        Section("Scores", tuple(_score_blocks(found))),
        Section("Cost", (_cost_table(found),)),
        Section("Instruction", tuple(_instruction_blocks(found))),
        Section(f"Demos only in {found.names[0]}", tuple(_demo_blocks(found.demos_only_first))),
        Section(f"Demos only in {found.names[1]}", tuple(_demo_blocks(found.demos_only_second))),
    ]
    return Document(f"{found.names[1]} against {found.names[0]}", tuple(each for each in sections if each.blocks))


def _options(first: Run, second: Run) -> dict[str, tuple[str | None, str | None]]:
    one, other = first.options, second.options
    return {name: (one.get(name), other.get(name)) for name in one | other if one.get(name) != other.get(name)}


def _but(some: tuple[Demo, ...], others: tuple[Demo, ...]) -> tuple[Demo, ...]:
    """Demos of rows that the others do not have; who answered them does not matter."""
    known = {demo.id for demo in others}
    return tuple(demo for demo in some if demo.id not in known)


def _cost(first: Run, second: Run) -> dict[str, Cost]:
    one, other = first.result, second.result
    return {
        "calls": _ratio(one.calls, other.calls),
        "tokens": _ratio(one.ledger.tokens, other.ledger.tokens),
        "usd": _ratio(one.ledger.usd, other.ledger.usd),
        "seconds": _ratio(one.ledger.seconds, other.ledger.seconds),
    }


def _ratio(first: float | None, second: float | None) -> Cost:
    return Cost(first, second, second / first if first and second is not None else None)


def _option_blocks(found: Comparison) -> Iterable[Block]:
    if found.options:
        rows = ((name, *("" if value is None else value for value in pair)) for name, pair in found.options.items())
        yield Table(("option", *found.names), tuple(rows))


def _score_blocks(found: Comparison) -> Iterable[Block]:
    names = zip(found.names, found.scores, strict=True)
    yield Table(("run", "score"), tuple((name, score_text(score)) for name, score in names))
    if found.paired is None:
        yield Text("The two have no predictions on the same rows, so their scores cannot be held against each other.")
        return
    yield Text(_in_words(found.paired))
    if found.paired.relabelled:
        yield Text(f"{found.paired.relabelled} rows were left out, because their labels differ between the two.")


def _in_words(both: Paired) -> str:
    low, high = both.interval
    told = (
        f"On the {both.n} rows that both answered, {both.units} units: {both.metric} {both.second:.3f} against "
        f"{both.first:.3f}, difference {both.difference:+.3f} [{low:+.3f}, {high:+.3f}]."
    )
    if both.mcnemar_p is None:
        return told
    return (
        f"{told} Only the second is right on {both.only_second_right} rows, only the first on {both.only_first_right}: "
        f"McNemar p = {both.mcnemar_p:.3f}."
    )


def _cost_table(found: Comparison) -> Table:
    rows = (
        (name, *("" if value is None else f"{round(value, 4):,}" for value in (cost.first, cost.second)),
         "" if cost.ratio is None else f"{cost.ratio:.2f} times")
        for name, cost in found.cost.items()
    )  # fmt: skip
    return Table(("", *found.names, "ratio"), tuple(rows))


def _instruction_blocks(found: Comparison) -> Iterable[Block]:
    if found.instruction:
        yield found.instruction if found.instruction.lines else Text(SAME)


def _demo_blocks(demos: tuple[Demo, ...]) -> Iterable[Block]:
    if demos:
        yield demo_table(demos)
