"""The benchmark of recording runs, and loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.recorder.spooled import ROOT


def test_a_small_run_tells_its_figures() -> None:
    sizes = ["--prior", "1000", "--events", "500", "--each", "50"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.log_latency", "--json", *sizes],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {"clean, idle", "clean, busy", "secret, idle", "naive append, busy"} < set(told["ours"])
    assert all(0 < each["p50_us"] <= each["p99_us"] <= each["max_us"] for each in told["ours"].values())
    assert told["at_once"]["there"] == told["at_once"]["events"] == 400
