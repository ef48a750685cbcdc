"""Failures a second that the offline model diagnoses on one core, each a new question. Goal: 300 with 16 demos."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from processes import ROOT, add_artifact, artifact_path, parser, show

from dspy_reflex.runtime.answer import ask
from dspy_reflex.runtime.artifact import Artifact, read
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.runtime.lm.model import LanguageModel

FAILURES = ROOT / "datasets" / "failures" / "test.jsonl"
ROUND = "--one-round"


def main() -> None:
    """Measure in fresh processes, or be one of them."""
    if ROUND in sys.argv:
        print(json.dumps(one_round(Path(sys.argv[-2]), Path(sys.argv[-1]))))
        return
    made = parser(__doc__)
    add_artifact(made)
    made.add_argument("--failures", type=Path, default=FAILURES, help="failures to diagnose (default: the test split)")
    options = made.parse_args()
    path = artifact_path(options.artifact)
    command = [sys.executable, str(Path(__file__)), ROUND, str(path), str(options.failures.resolve())]
    rounds = [_told(command) for _ in range(options.runs)]
    artifact, failures = read(path), len(_failures(options.failures))
    result = {
        "benchmark": "offline_throughput",
        "program": artifact.name,
        "demos": len(artifact.data["demos"]),
        "failures": failures,
        "runs": options.runs,
        "failures_per_s": failures / median(each["seconds"] for each in rounds),
        "first_answer_s": median(each["first_s"] for each in rounds),
    }
    show(result, options.json)


def one_round(path: Path, failures: Path) -> dict[str, float]:
    """Diagnose every failure once. The first answer, which reads the prompt's demos, is told apart."""
    artifact, model, rows = read(path), connect("offline"), _failures(failures)
    first_s = _asked(artifact, model, rows[:1])
    return {"first_s": first_s, "seconds": _asked(artifact, model, rows)}


def _asked(artifact: Artifact, model: LanguageModel, rows: list[dict[str, object]]) -> float:
    started = time.perf_counter()
    for row in rows:
        if ask(artifact, model, cause_inputs(row)).problem:
            raise SystemExit(f"no answer for {row.get('id')}")
    return time.perf_counter() - started


def _failures(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _told(command: list[str]) -> dict[str, float]:
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
