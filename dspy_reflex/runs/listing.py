"""All runs below a folder, a line each: compiles, those that did not finish, benchmarks, and whatever else was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dspy_reflex.errors import RunError
from dspy_reflex.runs.folder import CONFIG, RESULT, is_compile, parsed, read_object
from dspy_reflex.runs.result import Count, Part, Result, Share

Kind = Literal["compile", "unfinished", "benchmark", "other"]


@dataclass(frozen=True)
class Line:
    """One run. What is not known, or means nothing for its kind, is empty or None."""

    run: str
    """Its folder, below the one that was looked through."""
    kind: Kind
    program: str = ""
    optimizer: str = ""
    model: str = ""
    metric: str = ""
    score: float | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    partial: str | None = None
    """Why it stopped before it was through."""
    finished: str | None = None


@dataclass(frozen=True)
class Listing:
    """The runs by name, and a sentence for each that cannot be read."""

    runs: tuple[Line, ...]
    damaged: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"runs": [asdict(line) for line in self.runs], "damaged": list(self.damaged)}


class BenchmarkRow(Part):
    """How one contender did; which score it has depends on what it was asked."""

    name: str
    macro_f1: Share | None = None
    score: Share | None = None
    needs_review: Share | None = None
    interval: tuple[Share, Share]


class Benchmark(Part):
    """A benchmark's `result.json`; its first row is the program that it is about."""

    n: Count
    rows: tuple[BenchmarkRow, ...] = Field(min_length=1)


def list_runs(root: Path) -> Listing:
    """Look through a folder and all below it.

    Raises:
        RunError: There is no such folder.
    """
    if not root.is_dir():
        raise RunError(f"{root}: no such folder; name the one that your runs are in")
    folders = sorted({path.parent for name in (RESULT, CONFIG) for path in root.rglob(name)})
    lines: list[Line] = []
    damaged: list[str] = []
    for folder in folders:
        try:
            lines += _lines(folder, folder.relative_to(root).as_posix())
        except RunError as error:
            damaged.append(str(error))
    return Listing(tuple(lines), tuple(damaged))


def _lines(folder: Path, name: str) -> list[Line]:
    """The line of a folder; none if it only happens to have a `config.json`."""
    config = read_object(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    path = folder / RESULT
    if not path.is_file():
        begun = "program" in config and "optimizer" in config
        return [_asked(name, config)] if begun else []
    data = read_object(path)
    if is_compile(data):
        return [_compile(name, parsed(lambda: Result.model_validate(data), path), config)]
    if "dataset" in data and "rows" in data:
        return [_benchmark(name, parsed(lambda: Benchmark.model_validate(data), path))]
    n = data.get("n")
    return [Line(name, "other", n=n if isinstance(n, int) else None)]


def _asked(name: str, config: Mapping[str, Any]) -> Line:
    """What a run was asked for."""
    told = {key: str(config.get(key) or "") for key in ("program", "optimizer", "lm")}
    return Line(name, "unfinished", told["program"], told["optimizer"], told["lm"])


def _compile(name: str, result: Result, config: Mapping[str, Any]) -> Line:
    asked, scores = _asked(name, config), result.scores
    return Line(
        name, "compile", result.program, result.optimizer or asked.optimizer, asked.model,
        scores.metric, scores.value, scores.interval, scores.n,
        result.calls, result.ledger.tokens, result.ledger.usd, result.partial, result.finished,
    )  # fmt: skip


def _benchmark(name: str, found: Benchmark) -> Line:
    row = found.rows[0]
    scores = {"macro-F1": row.macro_f1, "rule score": row.score, "needs review": row.needs_review}
    # A benchmark of root causes has a share that needs review, too: the first that is there is what it is about.
    metric, value = next(((each, score) for each, score in scores.items() if score is not None), ("", None))
    return Line(name, "benchmark", row.name, metric=metric, score=value, interval=row.interval, n=found.n)
