"""Every optimizer on the same rows: what its program scores on failures that it has not seen, and what that cost.

Each compiles the root-cause program on `datasets/failures` with its default options and seed 0, on the offline model (a
deterministic in-context learner, not a language model). Scores are macro-F1 on the splits `test` and `test_hard`, read
once, at the end; nothing is chosen by them. An optimizer that changes nothing is listed as that.

`--served NAME` does the same once more against a server on loopback that speaks the OpenAI protocol and answers as the
offline learner does. Instructions are still proposed offline, since only the offline learner is shown all rows at once.
The scores must be the same; the calls are those that the server counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.model_server import serving
from dspy_reflex.benchmark.predict import Contender
from dspy_reflex.benchmark.runner import benchmark_cause
from dspy_reflex.errors import CompileError
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.optimize.options import CompileOptions
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy

DATA = Path("datasets/failures")
OUT = Path("experiments/optimizers")
TAXONOMY = load_taxonomy()
SPLITS = ("test", "test_hard")
THREADS = 4
SERVED_MODEL = "hosted_vllm/offline-served"

Score = tuple[float, tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """One optimizer's row of the table."""

    optimizer: str
    model: str
    val: float | None
    scores: dict[str, Score]
    """Macro-F1 and its 95 % interval, by split."""
    calls: int
    tokens: int
    seconds: float
    note: str = ""
    calls_counted_by_server: int | None = None


def main() -> None:
    """Compile, score, write the table, and print it as JSON."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--served", nargs="*", default=["bootstrap_few_shot", "miprov2"], choices=[*OPTIMIZERS])
    made.add_argument("--out", type=Path, default=OUT)
    chosen = made.parse_args()
    lines = [_uncompiled(), *(_line(name, "offline") for name in OPTIMIZERS)]
    with serving() as server:
        for name in chosen.served:
            os.environ["HOSTED_VLLM_API_BASE"] = server.url(name)
            line = _line(name, SERVED_MODEL)
            lines.append(replace(line, calls_counted_by_server=server.counts(name).calls - _scored(line)))
            _same(name, lines)
    result = {"benchmark": "optimizers", "lines": [*map(asdict, lines)]}
    write_atomic(chosen.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(chosen.out / "report.md", _report(lines).encode())
    sys.stdout.write((chosen.out / "result.json").read_text())


def _same(name: str, lines: list[Line]) -> None:
    offline, served = (line for line in lines if line.optimizer == name)
    if offline.scores != served.scores:
        raise SystemExit(f"{name} scores {served.scores} behind a server and {offline.scores} without one")


def _uncompiled() -> Line:
    plain = publish(RootCauseClassifier(TAXONOMY), model=connect("offline").name)
    return Line("uncompiled", "offline", None, _scores(plain, "offline"), 0, 0, 0.0)


def _line(name: str, model: str) -> Line:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        threads = 1 if model == "offline" else THREADS
        options = CompileOptions("root_cause", (DATA,), TAXONOMY, name, lm=model, prompt_lm="offline", threads=threads)
        try:
            made = run_compile(options, out=Path(folder) / "out", run=Path(folder) / "run")
        except CompileError as error:
            return Line(name, model, None, {}, 0, 0, _since(started), str(error))
    seconds = _since(started)
    sys.stderr.write(f"{name} on {model}: {made.calls} calls, {seconds} s\n")
    phases = made.ledger["phases"].values()
    tokens = sum(counts["input_tokens"] + counts["output_tokens"] for counts in phases)
    return Line(name, model, made.scores["value"], _scores(made.artifact, model), made.calls, tokens, seconds)


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 1)


def _scores(artifact: Artifact, model: str) -> dict[str, Score]:
    """Macro-F1 and its interval on each split."""
    found: dict[str, Score] = {}
    for split in SPLITS:
        contender = Contender(artifact.name, "program", artifact, connect(model))
        rows = load_evalset(DATA, TAXONOMY).split(split)
        (row,) = benchmark_cause(rows, [contender], baselines=False, concurrency=THREADS).rows
        found[split] = (round(row.macro_f1, 4), row.interval)
    return found


def _scored(line: Line) -> int:
    """Calls that scoring took, which the server has counted too."""
    rows = load_evalset(DATA, TAXONOMY)
    return sum(len(rows.split(split)) for split in line.scores)


def _report(lines: list[Line]) -> str:
    head = "| optimizer | model | test | test_hard | val (chosen on it) | calls | tokens | seconds |"
    table = [head, "| --- | --- | --- | --- | --- | --- | --- | --- |", *map(_cells, lines)]
    return "\n".join(["# Optimizers", "", *(__doc__ or "").strip().splitlines(), "", *table, *_notes(lines), ""])


def _cells(line: Line) -> str:
    scores = [_said(line.scores.get(split)) for split in SPLITS]
    val = "" if line.val is None else f"{line.val:.2f}"
    served = "" if line.calls_counted_by_server is None else f" (server: {line.calls_counted_by_server:,})"
    cost = [f"{line.calls:,}{served}", f"{line.tokens / 1e6:.1f} M", f"{line.seconds:.0f}"]
    return "| " + " | ".join([f"`{line.optimizer}`", line.model, *scores, val, *cost]) + " |"


def _said(score: Score | None) -> str:
    return "changed nothing" if score is None else f"{score[0]:.2f} [{score[1][0]:.2f}, {score[1][1]:.2f}]"


def _notes(lines: list[Line]) -> list[str]:
    return ["", *(f"`{line.optimizer}`: {line.note}" for line in lines if line.note)]


if __name__ == "__main__":
    main()
