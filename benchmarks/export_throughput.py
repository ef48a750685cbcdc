"""How fast do training rows become files, and how much memory does that take? Goal: 20,000 rows a second, bounded.

    python -m benchmarks.export_throughput         1 million rows of four kinds in each of three formats

Rows come from a generator, so that what is measured is formatting, the second redaction pass, writing and counting.
The baseline writes the same rows with `json.dumps`, unchecked and unredacted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from dspy_reflex.finetune.folder import write
from dspy_reflex.finetune.formats.registry import FORMATS
from dspy_reflex.finetune.row import Lineage, Row, Turn

ROWS = 1_000_000
SHOWN = ("trl", "openai", "parquet")
TEXT = "When the chat API answered with a limit, the figures were posted late; it should wait and try again. "


def main() -> None:
    """Measure each format in a process of its own, and the baseline."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rows", type=int, default=ROWS)
    made.add_argument("--one", help="measure this one here, and print it")
    options = made.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.rows)))
        return
    found = [_apart(name, options.rows) for name in ("json.dumps", *SHOWN)]
    base = found[0]["rows_per_s"]
    print(json.dumps([{**one, "of_baseline": round(one["rows_per_s"] / base, 3)} for one in found], indent=1))


def measured(name: str, n: int) -> dict[str, float | str]:
    """Rows a second and the most memory of this process, in MB, once with a tenth of the rows and once with all."""
    with tempfile.TemporaryDirectory() as folder:
        _run(name, n // 10, Path(folder) / "few")
        few = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        began = time.perf_counter()
        _run(name, n, Path(folder) / "all")
        seconds = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"format": name, "rows": n, "rows_per_s": round(n / seconds), "peak_mb": most, "peak_mb_of_a_tenth": few}


def rows(n: int) -> Iterator[Row]:
    """Rows of four kinds, each unlike the others."""
    for place in range(n):
        asked, good = (Turn("user", f"{TEXT}{place}"),), (Turn("assistant", f"It waited {place} s. {TEXT}"),)
        kind = ("sft", "preference", "unpaired", "sft")[place % 4]
        rejected = (Turn("assistant", f"It gave up {place}."),) if kind == "preference" else ()
        label = place % 8 == 2 if kind == "unpaired" else None
        rests = Lineage(failure=f"evt_{place}", proposal="prop_1", rule_sha256="0" * 64)
        yield Row(kind, "behave", asked, good, rests, f"f{place % 100}", rejected=rejected, label=label).identified()


def _run(name: str, n: int, out: Path) -> None:
    if name in FORMATS:
        write(rows(n), FORMATS[name], out, left_out=Counter(), licence="other", told={})
        return
    with out.open("w") as file:
        for row in rows(n):
            file.write(json.dumps(asdict(row)) + "\n")


def _apart(name: str, n: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.export_throughput", "--one", name, "--rows", str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
