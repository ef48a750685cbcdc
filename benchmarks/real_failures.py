"""How the root-cause program does on real failures: on a source that it has not seen, or on questions it has not seen.

With `--by source`, each source is left out in turn: the program is compiled on the other sources, pooled with the
package's own failures for the classes that real ones lack. With `--by group`, questions are dealt to five folds, and the
program is compiled on the real failures of the other four alone. Rows that share a `group` with a left-out one are left
out, too. Baselines learn from the very rows that the compile saw. Nothing compiled here is kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from dspy_reflex.benchmark.predict import Contender
from dspy_reflex.benchmark.report import write_report
from dspy_reflex.benchmark.results import CauseReport, pool
from dspy_reflex.benchmark.runner import benchmark_cause
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.leave_out import leave_out
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.split import folds
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.options import CompileOptions
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy

OWN = Path("datasets/failures")
TAXONOMY = load_taxonomy()
FOLDS = 5

Rows = tuple[LabelledFailure, ...]
Pairs = tuple[tuple[str, str], ...]
Part = tuple[Rows, Pairs]
"""Rows to score on, and what to leave out of the compile for them."""


def main() -> None:
    """Run, write the report, and print the scores as JSON."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("real", type=Path, help="JSON Lines file of real failures with `source` and `group`")
    made.add_argument("--by", choices=["source", "group"], default="source")
    made.add_argument("--optimizer", default="miprov2")
    made.add_argument("--out", type=Path, help="default: experiments/real-failures-by-<by>")
    options = made.parse_args()
    rows = load_evalset(options.real, TAXONOMY).rows
    parts, sets = (
        (by_source(rows), (options.real, OWN)) if options.by == "source" else (by_group(rows), (options.real,))
    )
    reports = [one_part(sets, options.optimizer, held_out, pairs) for held_out, pairs in parts]
    report = pool(reports, options.real.name)
    out = options.out or Path(f"experiments/real-failures-by-{options.by}")
    write_report(report, out)
    config = {"optimizer": options.optimizer, "by": options.by, "real": options.real.name, "sets": len(sets), "seed": 0}
    for name, value in (("result", report.to_json()), ("config", config)):
        write_atomic(out / f"{name}.json", (json.dumps(value, indent=1) + "\n").encode())
    print(json.dumps(report.to_json()))


def by_source(rows: Rows) -> list[Part]:
    """One part for each source."""
    sources = sorted({row.source for row in rows if row.source})
    return [(tuple(row for row in rows if row.source == source), (("source", source),)) for source in sources]


def by_group(rows: Rows) -> list[Part]:
    """Five parts, each of whole questions."""
    parts = [held_out for _, held_out in folds(rows, FOLDS)]
    return [
        (held_out, tuple(("group", group) for group in sorted({row.unit for row in held_out}))) for held_out in parts
    ]


def one_part(sets: tuple[Path, ...], optimizer: str, held_out: Rows, pairs: Pairs) -> CauseReport:
    """Compile without some rows, and score on them."""
    chosen = CompileOptions("root_cause", sets, TAXONOMY, optimizer, leave_out=pairs)
    with tempfile.TemporaryDirectory() as folder:
        made = run_compile(chosen, out=Path(folder) / "programs", run=Path(folder) / "run")
    loaded = leave_out([load_evalset(path, TAXONOMY) for path in sets], pairs)
    used = {*made.artifact.data["data"]["train"], *made.artifact.data["data"]["val"]}
    seen = [row for one in loaded for row in one.rows if row.row_hash in used]
    model = connect("offline")
    plain = publish(RootCauseClassifier(TAXONOMY), model=model.name)
    contenders = [
        Contender("compiled", "program", made.artifact, model),
        Contender("uncompiled", "uncompiled", plain, model),
    ]
    return benchmark_cause(held_out, contenders, trainset=unique(seen), by="source")


def unique(rows: list[LabelledFailure]) -> tuple[LabelledFailure, ...]:
    """Each row once."""
    return tuple({row.row_hash: row for row in rows}.values())


if __name__ == "__main__":
    main()
