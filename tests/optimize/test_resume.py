"""A run that was stopped, by whatever, goes on where it was: the same bytes, and nothing is paid for twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import MODEL, SETTINGS, Case, KillingServer, Trial, answers_in, killing
from dspy_reflex.errors import BudgetError, CompileError, ModelUnavailableError
from dspy_reflex.optimize.compile import resume_compile, run_compile
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.journal import FILE
from dspy_reflex.optimize.options import CompileOptions, CompileResult
from dspy_reflex.runtime.library import current
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.optimize.compiles import ROOT, files_below, quick, quickly, write_rows
from tests.optimize.thinking import WEAK, Thinking, pointed_at, wise
from tests.runtime.lm.loopback import Reply, Request, error

Serve = Callable[..., Thinking]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture(scope="module")
def killer() -> Generator[KillingServer]:
    """A server that kills who asks."""
    with killing() as server:
        yield server


def resumed(run: Path, out: Path | None = None, **limits: Any) -> CompileResult:
    """Go on with a run, in this process."""
    return resume_compile(run, out=out or run.parent / "out", limits=limits)


def replayed(result: CompileResult) -> int:
    """Answers that were there already."""
    return sum(phase["replayed"] for phase in result.ledger["phases"].values())


def bodies(server: Thinking) -> list[str]:
    """What was asked, question by question."""
    return [json.dumps(request.body, sort_keys=True) for request in server.requests]


class MostlyHere(Trial):
    """As the benchmark does it, but only what is killed is a process of its own: here a compile starts faster."""

    def finished(self, case: Case, run: Path, *, resume: bool) -> dict[str, Any]:
        """Compile or go on."""
        out, lm = self.place / "out", MODEL if case.served else "offline"
        if resume:
            return resume_compile(run, out=out).to_json()
        rows, taxonomy = (self.data,), load_taxonomy()
        options = CompileOptions("root_cause", rows, taxonomy, case.optimizer, SETTINGS, lm, threads=case.threads)
        return run_compile(options, out=out, run=run).to_json()


@pytest.mark.parametrize(
    "case",
    [
        Case("bootstrap_random_search", 8, True, 0.37, 0.004),
        Case("miprov2", 1, True, 0.8, 0.0),
        Case("bootstrap_random_search", 8, False, 0.6, 0.0),
    ],
    ids=lambda case: f"{case.optimizer}-{case.threads}-{'served' if case.served else 'offline'}",
)
def test_a_killed_compile_goes_on_where_it_was(
    case: Case, killer: KillingServer, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of the kills of `benchmarks/kill_resume.py`."""
    monkeypatch.setenv("OPENAI_BASE_URL", killer.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    found = MostlyHere(tmp_path, small, killer).outcome(case, "run")
    assert found.held, found
    assert 0 < found.kept < found.calls


def test_a_finished_run_gives_its_result_without_a_call(serve: Serve, small: Path, tmp_path: Path) -> None:
    """Even when its rows, its journal, its key and its server are gone; into another library, too."""
    server = serve(wise)
    data = shutil.copytree(small, tmp_path / "data")
    done = quick(tmp_path, data, lm=WEAK)
    asked = len(server.requests)
    again = resumed(done.run)
    shutil.rmtree(data)
    (done.run / FILE).unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY")
        elsewhere = resumed(done.run, tmp_path / "elsewhere")
    assert len(server.requests) == asked
    assert again.path.read_bytes() == elsewhere.path.read_bytes() == done.path.read_bytes()
    assert again.to_json() == done.to_json()
    assert current(tmp_path / "elsewhere", "root_cause") == {WEAK: done.artifact.version}


@pytest.mark.parametrize("threads", [1, 8])
def test_a_run_that_met_an_outage_goes_on_when_it_is_over(
    threads: int, serve: Serve, small: Path, tmp_path: Path
) -> None:
    """As if nothing had been: the same program, the same bill, and every question answered once."""
    serve(wise)
    whole = quick(tmp_path / "whole", small, optimizer="bootstrap_random_search", lm=WEAK)
    answered: list[str] = []
    broken = threading.Event()

    def think(request: Request) -> Reply:
        if len(answered) >= 60:
            broken.set()
        if broken.is_set():
            return error(503, retry_after="0.001")
        answered.append(json.dumps(request.body, sort_keys=True))
        return wise(request)

    serve(think)
    with pytest.raises(ModelUnavailableError):
        quick(tmp_path, small, optimizer="bootstrap_random_search", lm=WEAK, threads=threads)
    kept = len(answered)
    assert answers_in(tmp_path / "run" / FILE) == kept
    answered_before, answered[:] = answered[:], []
    broken.clear()
    result = resumed(tmp_path / "run")
    assert result.path.read_bytes() == whole.path.read_bytes()
    assert len({*answered_before, *answered}) == result.calls == whole.calls
    assert (replayed(result), len(answered)) == (kept, whole.calls - kept)
    assert result.candidates == whole.candidates


def test_a_run_goes_on_with_the_rows_it_began_with_or_not_at_all(serve: Serve, small: Path, tmp_path: Path) -> None:
    """One row less, another label, another row of val: each is another run."""
    server = serve(lambda _: error(503, retry_after="0.001"))
    data = shutil.copytree(small, tmp_path / "data")
    with pytest.raises(ModelUnavailableError):
        quick(tmp_path, data, lm=WEAK)
    asked = len(server.requests)
    for split, number in (("train", 5), ("val", 2)):
        rows = [json.loads(line) for line in (small / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
        for changed in (rows[:number] + rows[number + 1 :], [{**rows[0], "task": "Else."}, *rows[1:]]):
            write_rows(data / f"{split}.jsonl", changed)
            with pytest.raises(CompileError, match="the rows are not those that this run began with; start"):
                resumed(tmp_path / "run")
        write_rows(data / f"{split}.jsonl", rows)
    assert len(server.requests) == asked
    with pytest.raises(ModelUnavailableError):
        resumed(tmp_path / "run")


def test_a_folder_with_a_run_takes_no_other_one(small: Path, tmp_path: Path) -> None:
    """With the way out; nothing of it is changed."""
    quick(tmp_path, small)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in files_below(tmp_path / "run")}
    with pytest.raises(CompileError, match=r"there is a run already; go on with it by --resume .*run, or name another"):
        quick(tmp_path, small, optimizer="labeled_few_shot")
    assert {name: (tmp_path / "run" / name).read_bytes() for name in files_below(tmp_path / "run")} == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no run here to go on with"),
        (b"{", "cannot be read"),
        (b"{}", "cannot be used"),
        (b"[]", "cannot be used"),
    ],
)
def test_a_folder_without_a_run_is_one_sentence(content: bytes | None, said: str, tmp_path: Path) -> None:
    """Or with one whose config is damaged."""
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(CompileError, match=said) as caught:
        resumed(tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def test_two_sittings_of_a_run_at_once_are_safe(small: Path, tmp_path: Path) -> None:
    """One is a process of its own. Both end with the same program, and the journal is whole."""
    whole = quick(tmp_path / "whole", small, optimizer="bootstrap_random_search")
    options = quickly("root_cause", (small,), optimizer="bootstrap_random_search", budget=Budget(max_calls=40))
    with pytest.raises(BudgetError):
        run_compile(options, out=tmp_path / "out", run=tmp_path / "run")
    command = [sys.executable, "-m", "dspy_reflex", "compile", "--resume", str(tmp_path / "run"), "--max-calls", "9999"]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "there"), "--json"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as other:  # fmt: skip
        while answers_in(tmp_path / "run" / FILE) <= 40 and other.poll() is None:
            time.sleep(0.001)
        here = resumed(tmp_path / "run", tmp_path / "here", max_calls=9999)
        told, said = other.communicate()
    assert other.returncode == 0, said.decode()
    there = Path(json.loads(told)["artifact"])
    assert here.path.read_bytes() == there.read_bytes() == whole.path.read_bytes()
    assert answers_in(tmp_path / "run" / FILE) == whole.calls
    assert resumed(tmp_path / "run").to_json()["calls"] == whole.calls


def test_control_c_is_a_way_to_stop(killer: KillingServer, small: Path, tmp_path: Path) -> None:
    """No traceback, what was on its way is kept, and the run goes on."""
    where = {"OPENAI_BASE_URL": killer.url, "OPENAI_API_KEY": "sk-none", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "dspy_reflex", "compile", "root_cause", "--dataset", str(small), "--lm", MODEL]
    command += ["--optimizer", "bootstrap_random_search", "--max-demos", "6", "--trials", "4", "--threads", "8"]
    killer.arrived = 0
    with subprocess.Popen(
        [*command, "--run", str(tmp_path / "run")], cwd=tmp_path, env=os.environ | where, stderr=subprocess.PIPE
    ) as process:
        while killer.arrived < 60 and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert said.strip().endswith(b"interrupted")
    assert answers_in(tmp_path / "run" / FILE) == killer.arrived
