"""What a compile depends on and what it makes, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dspy_reflex.errors import CompileError
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import Artifact

CONFIG, RESULT = "config.json", "result.json"
TARGET_PRECISION = 0.8
"""Share of right answers among those that a program gives without asking a person."""

Cost = tuple[str, str, float]
"""Root cause, what was told instead, and how much worse that is than the usual mistake, which costs 1."""


@dataclass(frozen=True)
class CompileOptions:
    """Everything a compile depends on."""

    program: str
    """`root_cause` or `rule`."""
    datasets: tuple[Path, ...]
    """Folders or files of labelled failures, pooled split by split."""
    taxonomy: Taxonomy
    optimizer: str = "miprov2"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the optimizer; those not named have its defaults."""
    lm: str = "offline"
    """The model that the program is compiled for."""
    prompt_lm: str | None = None
    """The model that writes instructions; None for `lm`."""
    teacher_lm: str | None = None
    """The model that works out demos; None for `lm`."""
    seed: int = 0
    threads: int = 1
    leave_out: tuple[tuple[str, str], ...] = ()
    skip_bad: bool = False
    """Leave out rows that cannot be used instead of stopping."""
    costs: tuple[Cost, ...] = ()
    """Mistakes that are worse than others; with any, candidates are chosen by cost instead of macro-F1."""
    target_precision: float = TARGET_PRECISION
    cross_calibrate: bool = False
    """Learn what confidence is worth from train rows, by programs that did not learn from them, instead of from val."""
    batch: bool = False
    """Ask whole val sets through the provider's batches: half the price, for those who can wait."""
    learning_curve: bool = False
    """Compile on parts of the train set too, to see whether more rows would help."""
    budget: Budget = field(default_factory=Budget)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are asked."""
        return tuple(dict.fromkeys(name for name in (self.lm, self.prompt_lm, self.teacher_lm) if name))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; what `options_of` reads."""
        told = asdict(self) | {"taxonomy": self.taxonomy.model_dump(mode="json")}
        return told | {"datasets": [str(path) for path in self.datasets], "budget": self.budget.to_json()}


@dataclass(frozen=True)
class CompileResult:
    """What a compile made and what it cost."""

    artifact: Artifact
    path: Path
    run: Path
    told: Mapping[str, Any]
    """The content of the run's `result.json`."""

    @property
    def scores(self) -> dict[str, Any]:
        """Of the compiled program, with `uncompiled` beside it, on the same rows."""
        return self.told["scores"]

    @property
    def calls(self) -> int:
        """Answers that the run is built on, each counted once, whoever paid for it."""
        return self.told["calls"]

    @property
    def ledger(self) -> dict[str, Any]:
        """Calls, tokens and money by phase and by model."""
        return self.told["ledger"]

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """What was tried, in order."""
        return self.told["candidates"]

    @property
    def partial(self) -> str | None:
        """Why the search ended early; None if it did not."""
        return self.told["partial"]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known about it."""
        return tuple(self.told["warnings"])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; paths as given."""
        return {**self.told, "artifact": str(self.path), "run": str(self.run)}


def options_of(run: Path) -> CompileOptions:
    """The options that a run was started with.

    Raises:
        CompileError: The folder holds no run, or its config cannot be used.
    """
    told = read_config(run)
    try:
        return CompileOptions(
            **{
                name: told[name]
                for name in ("program", "optimizer", "settings", "lm", "prompt_lm", "teacher_lm", "seed")
            },
            **{
                name: told[name]
                for name in ("threads", "skip_bad", "target_precision", "learning_curve", "batch", "cross_calibrate")
            },
            datasets=tuple(map(Path, told["datasets"])),
            taxonomy=Taxonomy.model_validate(told["taxonomy"]),
            leave_out=tuple((name, value) for name, value in told["leave_out"]),
            costs=tuple((gold, other, float(cost)) for gold, other, cost in told["costs"]),
            budget=Budget(**told["budget"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CompileError(f"{run / CONFIG}: cannot be used ({error}); start the compile anew") from None


def read_config(run: Path) -> dict[str, Any]:
    """The content of a run's config.

    Raises:
        CompileError: It is missing or damaged.
    """
    try:
        return json.loads((run / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CompileError(f"{run}: there is no run here to go on with; name the folder that holds {CONFIG}") from None
    except (OSError, ValueError) as error:
        raise CompileError(f"{run / CONFIG}: cannot be read ({error}); start the compile anew") from None


def write_json(path: Path, value: Any) -> None:
    """Write a file of a run, whole or not at all."""
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
