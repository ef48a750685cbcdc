"""What a study depends on, and what makes two workers' commands the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_reflex.errors import ConfigError
from dspy_reflex.optimize.options import CompileOptions
from dspy_reflex.optimize.tune.space import Point, Space
from dspy_reflex.optimize.tune.storage import HEARTBEAT_S
from dspy_reflex.records.taxonomy import Taxonomy

METRICS = {"root_cause": "macro-F1", "rule": "rule score"}
"""What a program's score is."""


@dataclass(frozen=True)
class TuneOptions:
    """Everything a study depends on."""

    program: str
    """`root_cause` or `rule`."""
    datasets: tuple[Path, ...]
    """Folders or files of labelled failures, pooled split by split."""
    taxonomy: Taxonomy
    space: Space
    trials: int
    """Of the whole study, whoever runs them; one that is run again counts once."""
    storage: str
    """A URL, see `open_storage`."""
    study: str
    seed: int = 0
    """Of every compile, so that settings are compared and not luck; trial n is drawn with this plus n."""
    threads: int = 1
    leave_out: tuple[tuple[str, str], ...] = ()
    skip_bad: bool = False
    heartbeat_s: int = HEARTBEAT_S

    def compile_options(self, point: Point) -> CompileOptions:
        """The compile of a place in the space."""
        return CompileOptions(
            program=self.program,
            datasets=self.datasets,
            taxonomy=self.taxonomy,
            optimizer=point.optimizer,
            settings=point.settings,
            lm=point.lm,
            prompt_lm=point.prompt_lm,
            seed=self.seed,
            threads=self.threads,
            leave_out=self.leave_out,
            skip_bad=self.skip_bad,
        )

    def config(self, dataset: str, rows: str) -> dict[str, Any]:
        """What has to be the same for all workers; rows count by content (`rows` is their digest), not by place."""
        return {
            "program": self.program,
            "metric": METRICS[self.program],
            "dataset": dataset,
            "rows": rows,
            "taxonomy": self.taxonomy.digest,
            "seed": self.seed,
            **self.space.to_json(),
        }


def same_command(study: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse to join a study that asks something else.

    Raises:
        ConfigError: Something differs; it is named.
    """
    differing = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    if differing:
        raise ConfigError(
            f"the study {study!r} was begun with other {', '.join(differing)}; join it with the same options, or name "
            "another --study"
        )
