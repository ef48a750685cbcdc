"""How fast does a store become training rows, and how much memory does that take? Goal: 20,000 rows a second, bounded.

    python -m benchmarks.export_throughput         writes experiments/export-throughput, in about ten minutes

Out of a store: two stores are filled, one with a tenth of the failures of the other: rules with 50 failures each, every
failure diagnosed and corrected. `export` runs on both in a process of its own, with all it does: reading, the guard over
the bundled eval set, redaction, deduplication, checks, writing, checksums. Rows are not kept: what grows with them is a
number for each, and the rules with what reviewers wrote. The baseline reads the rows that were written and writes them
again with `json`, and does nothing else.

Streamed: a million rows, the first 5,000 of the store over and over, are checked, put into a format and written with their
lineage, in a process of its own for each format.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from dspy_reflex.clock import now
from dspy_reflex.files import write_atomic
from dspy_reflex.finetune.book import Book
from dspy_reflex.finetune.formats.registry import NAMES, format_of
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.source import Source
from dspy_reflex.ids import new_id
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.records.review import FiledProposal, Review
from dspy_reflex.stages.export import export, guard_for
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store

OUT = Path("experiments/export-throughput")
ROWS = 1_000_000
DIFFERENT = 5_000
OF_A_FAILURE = 6.4
"""Rows of a corrected failure in TRL's format, about."""
OF_A_RULE = 50
SHOWN = ("trl", "openai", "parquet")
GOAL = 20_000
TEXT = "When the chat API answered with a limit, the figures were posted late; it should have waited and tried again. "


def main() -> None:
    """Fill two stores, measure each format in a process of its own, and the baseline; write and print."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rows", type=int, default=ROWS)
    made.add_argument("--out", type=Path, default=OUT)
    made.add_argument("--one", help="measure this format here, in --folder, and print it")
    made.add_argument("--stream", help="stream rows into this format here, in --folder, and print it")
    made.add_argument("--folder", type=Path)
    options = made.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.folder)))
        return
    if options.stream:
        print(json.dumps(streamed(options.stream, options.folder, options.rows)))
        return
    with tempfile.TemporaryDirectory() as folder:
        failures = round(options.rows / OF_A_FAILURE)
        for name, n in (("few", failures // 10), ("all", failures)):
            fill(Path(folder) / name, n)
        found = [_apart("--one", name, Path(folder)) for name in (*SHOWN, "json")]
        alone = [_apart("--stream", name, Path(folder), "--rows", str(options.rows)) for name in NAMES]
    result = {
        "benchmark": "export_throughput", "goal_rows_per_s": GOAL, "failures": failures, "formats": found,
        "streamed": alone,
    }  # fmt: skip
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", report(result).encode())
    print(report(result))


def measured(name: str, folder: Path) -> dict[str, Any]:
    """Rows a second, and the most memory of this process in MB: with a tenth of the failures, and with all."""
    run = _copy if name == "json" else _export
    run(name, folder / "few")
    few_mb = _peak_mb()
    began = time.perf_counter()
    rows = run(name, folder / "all")
    seconds = time.perf_counter() - began
    rate = round(rows / seconds)
    return {"format": name, "rows": rows, "rows_per_s": rate, "peak_mb": _peak_mb(), "peak_mb_of_a_tenth": few_mb}


def streamed(name: str, folder: Path, number: int) -> dict[str, Any]:
    """Rows a second into a format, of those that it has words for, and the most memory of this process in MB."""
    form, out = format_of(name), folder / f"streamed-{name}"
    with Store(f"sqlite:///{folder / 'few' / 'store.db'}") as store, store.read() as connection:
        drawn = [*islice(Source(connection, Plan(), guard_for([])), DIFFERENT)]
    rows = [row for row in drawn if row.kind in form.shapes]
    began = time.perf_counter()
    with closing(Book(form, out, "other")) as book:
        for place, row in enumerate(islice(cycle(rows), number)):
            book.enter(row._replace(number=place))
    seconds = time.perf_counter() - began
    told = {
        "format": name,
        "rows": book.added_and_gone[0],
        "rows_per_s": round(number / seconds),
        "peak_mb": _peak_mb(),
    }
    shutil.rmtree(out)
    return told


def fill(folder: Path, n: int) -> None:
    """A store of approved rules with corrected failures."""
    folder.mkdir()
    with Store(f"sqlite:///{folder / 'store.db'}") as store:
        for first in range(0, n, OF_A_RULE):
            _teach(store, range(first, min(first + OF_A_RULE, n)))


def report(result: Mapping[str, Any]) -> str:
    """For people."""
    about = (__doc__ or "").strip().split("\n\n", maxsplit=2)[2]
    rows = [
        f"| {one['format']} | {one['rows']:,} | {one['rows_per_s']:,} | {one['peak_mb']} | {one['peak_mb_of_a_tenth']} |"
        for one in result["formats"]
    ]
    alone = [
        f"| {one['format']} | {one['rows']:,} | {one['rows_per_s']:,} | {one['peak_mb']} |"
        for one in result["streamed"]
    ]
    head = "| out of a store | rows | rows a second | peak, MB | peak of a tenth, MB |\n| --- | --- | --- | --- | --- |"
    second = "| streamed | rows | rows a second | peak, MB |\n| --- | --- | --- | --- |"
    title = f"# A store of {result['failures']:,} corrected failures becomes training rows"
    return "\n\n".join([title, about, "\n".join([head, *rows]), "\n".join([second, *alone])]) + "\n"


def _export(name: str, folder: Path) -> int:
    with Store(f"sqlite:///{folder / 'store.db'}") as store:
        found = export(store, Plan(), guard_for([]), format_of(name), folder / name, licence="other")
    return sum(found.contents.rows.values())


def _copy(_: str, folder: Path) -> int:
    n = 0
    with (folder / "copy.jsonl").open("w") as copy:
        for file in sorted((folder / "trl" / "data").rglob("*.jsonl")):
            with file.open() as lines:
                for line in lines:
                    copy.write(json.dumps(json.loads(line)) + "\n")
                    n += 1
    return n


def _teach(store: Store, places: Sequence[int]) -> None:
    events = [_event(place) for place in places]
    ids = tuple(one["id"] for one in events)
    with store.write() as connection:
        outcomes.take_in(connection, events)
        found = outcomes.failures_of(connection, ids)
        said = {"root_cause": "tool_failure", "confidence": 0.9, "needs_review": False, "symptom": f"s{places[0] % 7}"}
        said |= {
            "signature": f"<num> {places[0]}",
            "program": "root_cause@0",
            "model": "offline",
            "score": "unmeasured",
        }
        told = [Diagnosed(one, Diagnosis.model_validate({**said, "failure_id": one.id})) for one in found]
        diagnoses.add(connection, told)
        filed = _filed(ids, places[0])
        proposals.file(connection, filed, actor="benchmark")
        proposals.move(connection, filed, "approved", actor="a person", action="approve")
        correction = {one: f"It waited {place} s. {TEXT}" for one, place in zip(ids, places, strict=True)}
        act = {"by": "a person", "action": "approve", "before": filed.rule, "rule": filed.rule}
        review = {"id": new_id("rev"), "proposal_id": filed.id, "at": now(), "correction": correction, **act}
        proposals.add_review(connection, Review.model_validate(review))


def _event(place: int) -> dict[str, Any]:
    told = {"task": f"Send report {place}. {TEXT}", "expected_outcome": None, "actual_outcome": f"429 for {place}."}
    context = {"tool": "chat", "tries": place % 5}
    usual = {"at": micros(now()), "agent_id": "agent", "ok": False, "severity": "high", "context": context}
    return {"id": f"evt_{place:08}", **usual, **told}


def _filed(ids: tuple[str, ...], place: int) -> FiledProposal:
    rule = f"When a call is throttled, wait {place} s and try again, at most three times."
    made = {"root_cause": "tool_failure", "component": "TOOLS", "rule": rule, "program": "rule@0", "model": "offline"}
    proposal = Proposal.model_validate({"id": f"prop_{place}", "failure_ids": ids, "score": "unmeasured", **made})
    where = {"agent_id": "*", "symptom": f"s{place % 7}", "severity": "high", "confidence": 0.9, "file": "TOOLS.md"}
    told = {"id": new_id("prop"), "at": now(), "base": "0" * 64, "rule": rule, "proposal": proposal, **where}
    return FiledProposal.model_validate(told)


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _apart(what: str, name: str, folder: Path, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.export_throughput", what, name, "--folder", str(folder), *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
