"""Is anything lost or paid for twice when a compile is killed at any moment and resumed?

    python -m benchmarks.kill_resume       20 kills, in a few minutes; writes experiments/kill-resume

The real command on a few rows, killed by SIGKILL at moments drawn with a seed, half of them behind a server on loopback
that answers as the offline learner does, with one question at a time or eight. Behind the server a moment is a question:
the compile is killed within milliseconds of its arrival, before or after the answer. Offline it is an answer in the
journal. A resumed compile must end with the bytes of one that nobody killed, and ask nothing whose answer had been kept.
What had been asked and not kept yet is asked again, and counted apart: at most one question a thread.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.model_server import Server
from dspy_reflex.benchmark.markdown import table
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.writing import write_splits
from dspy_reflex.files import write_atomic
from dspy_reflex.optimize.models.journal import FILE
from dspy_reflex.runtime.lm import offline
from dspy_reflex.taxonomies.load import load_taxonomy

ROOT = Path(__file__).parents[1]
OUT = Path("experiments/kill-resume")
KILLS = 20
ROWS_PER_CAUSE = {"train": 5, "val": 3}
MODEL = "openai/gpt-4o-mini"
OPTIMIZERS = ("bootstrap_random_search", "miprov2")
SETTINGS = {"max_demos": 6, "trials": 4}
THREADS = (1, 8)
LATEST_S = 0.02
"""How long after the arrival of a question the compile is killed at most."""
LOOK_S = 0.001
"""How often the journal is looked at, offline."""


@dataclass(frozen=True)
class Case:
    """One kill."""

    optimizer: str
    threads: int
    served: bool
    at: float
    """How far the compile is by then, as a share of its calls."""
    delay_s: float


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    case: Case
    calls: int
    """What the compile takes when nobody kills it."""
    killed: bool
    """Not if it was done before."""
    kept: int
    """Answers in the journal when it died."""
    arrived: int
    """Questions that had reached the server by then; offline those that were kept, for nobody else knows of any."""
    asked_after: int
    """Questions that the resumed one asked."""
    same: bool
    """Whether it ended with the same bytes."""

    @property
    def repeated(self) -> int:
        """Questions that were asked again although their answers had been kept."""
        return self.asked_after - (self.calls - self.kept)

    @property
    def in_flight(self) -> int:
        """Questions that were asked and whose answers were not kept any more."""
        return self.arrived - self.kept

    @property
    def held(self) -> bool:
        """Whether all is as it should be."""
        return self.killed and self.same and self.repeated == 0 and 0 <= self.in_flight <= self.case.threads


class KillingServer(Server):
    """Answers as the offline learner does, and kills who asks at a certain question."""

    def __init__(self) -> None:
        """Bind to a free port; kill nobody."""
        super().__init__()
        self.arrived = 0
        self.victim: subprocess.Popen[bytes] | None = None
        self.at = 0
        self.delay_s = 0.0
        self._count_lock = threading.Lock()

    def answer(self, side: str, chat: Sequence[Mapping[str, str]], seed: int | None) -> str:
        """The same question has the same answer, always."""
        with self._count_lock:
            self.arrived += 1
            now = self.victim and self.arrived == self.at
        if now and self.victim:
            threading.Timer(self.delay_s, self.victim.kill).start()
        return offline.answer(chat, seed or 0)

    @property
    def url(self) -> str:
        """The address up to and with `/v1`; an answer is not delayed."""
        return f"http://127.0.0.1:{self.server_port}/kill/0/v1"


@contextmanager
def killing() -> Generator[KillingServer]:
    """Run the server until the block ends."""
    with KillingServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def cases(number: int, seed: int = 0) -> list[Case]:
    """So many kills; optimizers, threads and models in turn, moments at random."""
    rng = random.Random(seed)
    return [
        Case(OPTIMIZERS[i % 2], THREADS[i // 2 % 2], i // 4 % 2 == 0, rng.uniform(0, 1), rng.uniform(0, LATEST_S))
        for i in range(number)
    ]


class Trial:
    """Compiles of the same rows, killed and not."""

    def __init__(self, place: Path, data: Path, server: KillingServer) -> None:
        """Work in a folder that is there."""
        self.place, self.data, self._server = place, data, server
        self._whole: dict[tuple[str, bool], tuple[int, bytes]] = {}

    def outcome(self, case: Case, name: str) -> Outcome:
        """Kill a compile, resume it, and compare it with one that nobody killed."""
        calls, program = self.whole(case)
        run, at = self.place / name, max(1, min(calls - 1, round(case.at * calls)))
        killed = self._killed(case, run, at)
        kept = answers_in(run / FILE)
        arrived = self._server.arrived if case.served else kept
        self._server.arrived = 0
        told = self.finished(case, run, resume=True)
        asked_after = self._server.arrived if case.served else told["calls"] - replayed(told)
        if replayed(told) != kept:
            raise SystemExit(f"{name}: {kept} answers were kept, and the resumed compile says {replayed(told)}")
        return Outcome(case, calls, killed, kept, arrived, asked_after, Path(told["artifact"]).read_bytes() == program)

    def whole(self, case: Case) -> tuple[int, bytes]:
        """Calls and artefact of a compile that nobody kills; with so few rows once for any number of threads."""
        key = case.optimizer, case.served
        if key not in self._whole:
            told = self.finished(case, self.place / f"whole-{case.optimizer}-{case.served}", resume=False)
            self._whole[key] = told["calls"], Path(told["artifact"]).read_bytes()
        return self._whole[key]

    def _killed(self, case: Case, run: Path, at: int) -> bool:
        self._server.at, self._server.delay_s = (at, case.delay_s) if case.served else (0, 0.0)
        self._server.arrived = 0
        self._server.victim = process = self._start(case, run)
        if not case.served:
            while process.poll() is None and answers_in(run / FILE) < at:
                time.sleep(LOOK_S)
            process.kill()
        process.communicate()
        self._server.victim = None
        time.sleep(2 * LATEST_S)  # what was on its way arrives
        return process.returncode == -signal.SIGKILL and not (run / "result.json").exists()

    def finished(self, case: Case, run: Path, *, resume: bool) -> dict[str, Any]:
        """Compile to the end, from the beginning or where it was; what the command tells.

        Raises:
            SystemExit: It failed; says what it said.
        """
        process = self._start(case, run, resume=resume)
        told, said = process.communicate()
        if process.returncode:
            raise SystemExit(f"the compile ended with {process.returncode}: {said.decode()[-2000:]}")
        return json.loads(told)

    def _start(self, case: Case, run: Path, *, resume: bool = False) -> subprocess.Popen[bytes]:
        settings = [word for name, value in SETTINGS.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        new = ["root_cause", "--dataset", str(self.data), "--optimizer", case.optimizer, *settings, "--run", str(run)]
        new += ["--threads", str(case.threads), "--lm", MODEL if case.served else "offline"]
        command = [sys.executable, "-m", "dspy_reflex", "compile", *(["--resume", str(run)] if resume else new)]
        where = {"OPENAI_BASE_URL": self._server.url, "OPENAI_API_KEY": "sk-none", "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [*command, "--out", str(self.place / "out"), "--json"],
            cwd=self.place,
            env={**os.environ, **where},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def answers_in(journal: Path) -> int:
    """How many answers a journal holds; 0 before there is one."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as file:
        return file.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
    return 0


def replayed(told: Mapping[str, Any]) -> int:
    """How many answers a compile says that it found."""
    return sum(phase["replayed"] for phase in told["ledger"]["phases"].values())


def write_rows(folder: Path) -> Path:
    """A few rows of each cause of our own failures."""
    splits = load_evalset(ROOT / "datasets" / "failures", load_taxonomy()).splits
    causes = sorted({str(row.root_cause) for row in splits["train"]})
    few = {
        name: [row for cause in causes for row in [row for row in splits[name] if row.root_cause == cause][:number]]
        for name, number in ROWS_PER_CAUSE.items()
    }
    write_splits(folder, few)
    return folder


def summary(found: Sequence[Outcome]) -> dict[str, Any]:
    """What is to be told of all kills."""
    return {
        "benchmark": "kill_resume",
        "kills": len(found),
        "held": sum(one.held for one in found),
        "repeated": sum(one.repeated for one in found),
        "in_flight": sum(one.in_flight for one in found),
        "each": [
            {**asdict(one.case), "calls": one.calls, "kept": one.kept, "in_flight": one.in_flight}
            | {"asked_after": one.asked_after, "repeated": one.repeated, "killed": one.killed, "same": one.same}
            for one in found
        ],
    }


def render(result: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    columns = ("optimizer", "threads", "calls", "kept", "in_flight", "asked_after", "repeated", "same")
    lines = [
        ["served" if one["served"] else "offline", *(str(one[name]) for name in columns)] for one in result["each"]
    ]
    about = (
        f"{result['held']} of {result['kills']} resumed compiles ended with the bytes of one that nobody killed, and asked "
        f"nothing again whose answer had been kept ({result['repeated']} calls repeated). {result['in_flight']} questions "
        "that were on their way were asked again, at most one a thread."
    )
    return "\n\n".join(["# A compile killed at any moment", about, table(("model", *columns), lines)]) + "\n"


def main() -> None:
    """Kill, resume, compare and write; fail if something did not hold."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--kills", type=int, default=KILLS, help=f"how many (default: {KILLS})")
    made.add_argument("--seed", type=int, default=0, help="of the moments (default: 0)")
    made.add_argument("--out", type=Path, default=OUT, help=f"folder for the outcome (default: {OUT})")
    options = made.parse_args()
    with tempfile.TemporaryDirectory() as folder, killing() as server:
        trial = Trial(Path(folder), write_rows(Path(folder) / "data"), server)
        found = [trial.outcome(case, f"run-{i}") for i, case in enumerate(cases(options.kills, options.seed))]
    result = summary(found)
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", render(result).encode())
    print(render(result))
    if not all(one.held for one in found):
        raise SystemExit("a kill lost something")


if __name__ == "__main__":
    main()
