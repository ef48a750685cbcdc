"""`dspy-reflex diagnose --batch`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.runtime.lm.batches import run
from tests.cli.runner import Reflex
from tests.optimize.compiles import ROOT, take
from tests.optimize.thinking import wise
from tests.runtime.lm.batch_server import ERRORED, INVALID, BatchServer, batch_server
from tests.runtime.lm.loopback import KEY, Reply, Request

pytest.importorskip("anthropic")
OPUS = "anthropic/claude-opus-5-5"
N = 24


def thinks(params: dict[str, Any]) -> Reply:
    """What the offline learner would say."""
    return wise(Request("", {}, {**params, "messages": _with_system(params)}))


def _with_system(params: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": params["system"]}, *params["messages"]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[BatchServer]:
    """A server that thinks, where the environment says Anthropic is."""
    for name in ("FIRST_POLL_S", "LONGEST_POLL_S", "LOOK_AFTER_S"):
        monkeypatch.setattr(run, name, 0.001)
    with batch_server(thinks) as found:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", found.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield found


def test_it_prints_what_diagnose_prints(failures: Path, cause: Path, reflex: Reflex, server: BatchServer) -> None:
    """To the byte, but for the cost, which is half."""
    arguments = ("diagnose", failures, "--program", cause, "--lm", OPUS, "--json")
    alone, together = reflex(*arguments), reflex(*arguments, "--batch", "--run", "run")
    assert (together.code, server.submitted.total()) == (0, N)
    assert together.json.pop("cost_usd") == pytest.approx(alone.json.pop("cost_usd") / 2)
    assert {**together.json, "cost_usd": 0} == {**alone.json, "cost_usd": 0}
    assert [one["failure_id"] for one in together.json["diagnoses"]] == [row["id"] for row in take(8, 12)]
    assert "batches are kept in run\n" in together.err
    assert f"msgbatch_0000: {N} processing\n" in together.err
    assert f"msgbatch_0000: {N} succeeded\n" in together.err
    assert KEY not in together.err + Path("run/batch.json").read_text()


def test_for_people_it_is_the_same_table(failures: Path, cause: Path, reflex: Reflex, server: BatchServer) -> None:
    """The second time from the folder, with nobody asked."""
    arguments = ("diagnose", failures, "--program", cause, "--lm", OPUS, "--batch")
    first = reflex(*arguments)
    server.verbs.clear()
    assert reflex(*arguments).out == first.out
    assert server.verbs == []


def test_what_has_no_answer_is_said_and_exit_code_1(
    failures: Path, cause: Path, reflex: Reflex, server: BatchServer
) -> None:
    """The rest is printed."""
    fates = [ERRORED, INVALID, ERRORED]
    server.think = lambda params: fates.pop() if fates else thinks(params)
    done = reflex("diagnose", failures, "--program", cause, "--lm", OPUS, "--batch", "--json")
    assert (done.code, len(done.json["diagnoses"]), done.json["left"]) == (1, N - 1, 1)
    assert done.json["stopped"] == "1 invalid (invalid_request_error: prompt is too long)"
    assert "(1 left)" in done.err


def test_killed_the_same_command_goes_on(
    failures: Path, cause: Path, reflex: Reflex, server: BatchServer, tmp_path: Path
) -> None:
    """A real process, killed when it asks how far the batch is."""
    arguments = ("diagnose", str(failures), "--program", str(cause), "--lm", OPUS, "--batch", "--json")
    process = subprocess.Popen(
        [sys.executable, "-c", "from dspy_reflex.cli.main import main; main()", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    server.watch = lambda what: os.kill(process.pid, signal.SIGKILL) if what == "before retrieve" else None
    assert process.communicate(timeout=60)[0] == b""
    assert process.returncode == -signal.SIGKILL
    server.watch = lambda _: None
    done = reflex(*arguments)
    assert (done.code, len(done.json["diagnoses"]), done.json["left"]) == (0, N, 0)
    assert (len(server.batches), server.submitted.total()) == (1, N)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--batch"], "offline/1 has no batches; leave it out"),
        (["--batch", "--lm", "ollama_chat/m"], "ollama_chat/m has no batches"),
        (["--run", "run"], "--run goes with --batch"),
        (["--batch", "--lm", OPUS, "--max-usd", "0.01"], "could cost"),
        (["--batch", "--lm", "anthropic/claude-test", "--max-usd", "1"], "REFLEX_PRICES"),
        (["--batch", "--lm", OPUS, "--run", "other"], "batches of other questions"),
        (["--batch", "--lm", OPUS, "--run", "torn"], "torn/batch.json: damaged"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_nothing_is_sent(
    arguments: list[str], said: str, failures: Path, cause: Path, reflex: Reflex, server: BatchServer
) -> None:
    """Exit code 2."""
    for name, content in (("other", {"format": "dspy-reflex/batches", "digest": "x", "batches": []}), ("torn", None)):
        Path(name).mkdir()
        Path(name, "batch.json").write_text(json.dumps(content))
    assert said in reflex("diagnose", failures, "--program", cause, *arguments).refusal
    assert "create" not in server.verbs
