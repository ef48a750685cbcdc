"""Leave one source out in turn: how the root-cause program does on real failures of a kind that it has not seen.

For each source, the program is compiled on the rows of the other sources, pooled with the package's own failures for the
classes that real ones lack; rows that share a `group` with the left-out source are left out, too. Baselines learn from
the very rows that the compile saw. Nothing compiled here is kept.
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
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.compile import CompileOptions, run_compile
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy

OWN = Path("datasets/failures")
TAXONOMY = load_taxonomy()


def main() -> None:
    """Run, write the report, and print the scores as JSON."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("real", type=Path, help="JSON Lines file of real failures with `source` and `group`")
    made.add_argument("--out", type=Path, default=Path("experiments/real-failures"))
    made.add_argument("--optimizer", default="miprov2")
    options = made.parse_args()
    rows = load_evalset(options.real, TAXONOMY).rows
    sources = sorted({row.source for row in rows if row.source})
    report = pool([one_source(options.real, options.optimizer, source) for source in sources], options.real.name)
    write_report(report, options.out)
    result = report.to_json()
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    config = {"optimizer": options.optimizer, "real": options.real.name, "own": str(OWN), "by": "source", "seed": 0}
    write_atomic(options.out / "config.json", (json.dumps(config, indent=1) + "\n").encode())
    print(json.dumps(result))


def one_source(real: Path, optimizer: str, source: str) -> CauseReport:
    """Compile without a source, and score on it."""
    chosen = CompileOptions("root_cause", (real, OWN), TAXONOMY, optimizer, leave_out=(("source", source),))
    with tempfile.TemporaryDirectory() as folder:
        made = run_compile(chosen, out=Path(folder) / "programs", run=Path(folder) / "run")
    sets = [load_evalset(real, TAXONOMY), load_evalset(OWN, TAXONOMY)]
    held_out = tuple(row for row in sets[0].rows if row.source == source)
    used = {*made.artifact.data["data"]["train"], *made.artifact.data["data"]["val"]}
    seen = [row for one in leave_out(sets, [("source", source)]) for row in one.rows if row.row_hash in used]
    model = connect("offline")
    plain = publish(RootCauseClassifier(TAXONOMY), TAXONOMY, model=model.name)
    contenders = [
        Contender("compiled", "program", made.artifact, model),
        Contender("uncompiled", "uncompiled", plain, model),
    ]
    return benchmark_cause(held_out, contenders, trainset=unique(seen), by="source", dataset=source)


def unique(rows: list[LabelledFailure]) -> tuple[LabelledFailure, ...]:
    """Each row once."""
    return tuple({row.row_hash: row for row in rows}.values())


if __name__ == "__main__":
    main()
