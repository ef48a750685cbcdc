"""MAST (Cemri et al. 2025): whole multi-agent runs with the failure modes they show, none of them marked as the main one.

Its files are `MAD_full_dataset.json` (a model's votes: code to 0 or 1) and `MAD_human_labelled_dataset.json` (three
people's votes by the mode's title). The latter spans three versions of the taxonomy, in which codes were given to other
modes; therefore its modes are recognised by title and never by code. Which of `3.2` and `3.3` is which differs between
its makers' own files; here it is as in the paper.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from dspy_reflex.evalset.importers.excerpt import EXCERPT_CHARS
from dspy_reflex.evalset.importers.imported import Gathering, canonical, make_row
from dspy_reflex.evalset.importers.reading import Record, parse
from dspy_reflex.taxonomies.load import load_taxonomy
from dspy_reflex.untrusted import as_text, clip

KIND = "MAST"
CODES: tuple[str, ...] = (
    "1.1",
    "1.2",
    "1.3",
    "1.4",
    "1.5",
    "2.1",
    "2.2",
    "2.3",
    "2.4",
    "2.5",
    "2.6",
    "3.1",
    "3.2",
    "3.3",
)
"""The codes of the published modes, in the order of the preset."""
OTHER_TITLES = {
    "Ignored Other Agent's Input": "Ignored Other Agent Input",
    "Action-Reasoning Mismatch": "Reasoning-Action Mismatch",
    "Weak Verification": "No or Incomplete Verification",
    "No or Incorrect Verification": "Incorrect Verification",
}
"""Titles in the makers' definitions that the paper has otherwise."""
MAJORITY = 2
TASK = (re.compile(r"\*\*task_prompt\*\*: *(\S.*)"), re.compile(r"\bProblem:\s*(\S[^\n]*)"))
"""Where ChatDev and AG2 logs state the task."""
HEAD_CHARS = 600
"""What of a log's beginning stands for the task where it does not state one."""
END_CHARS = 1_500
"""What of a log's end stands for what came out."""
# Logs of AG2 may hold an annotator's note with votes on an early version of the taxonomy: as YAML, or as a key of JSON.
NOTE = re.compile(r"^( *)note: *\n(?:\1 +\S.*\n?|[ \t]*\n)+", re.MULTILINE)


class _Vote(BaseModel):
    mode: str = Field(alias="failure mode")
    annotator_1: bool | None = None
    annotator_2: bool | None = None
    annotator_3: bool | None = None

    @property
    def yes(self) -> bool:
        return [self.annotator_1, self.annotator_2, self.annotator_3].count(True) >= MAJORITY


class _Run(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    mas_name: str
    benchmark_name: str = ""
    llm_name: str = ""
    trace_id: str
    trace: Any
    mast_annotation: dict[str, int | None] | None = None
    annotations: tuple[_Vote, ...] | None = None


def import_mast(records: Sequence[Record], into: Gathering) -> None:
    """One row a run with at least one mode; the modes in the taxonomy's order, since none is the main one."""
    seen: set[str] = set()
    for record in records:
        run = parse(record, _Run, KIND, into.problems)
        if run is None:
            continue
        if run.mast_annotation is None and run.annotations is None:
            into.problems.add(record.where, "no mast_annotation and no annotations; is this another version?")
            continue
        name = _name(run)
        if name in seen:
            into.skip("the same run as an earlier record")
            continue
        seen.add(name)
        _add(record.where, name, run, into)


def _add(where: str, name: str, run: _Run, into: Gathering) -> None:
    modes = dict(_modes(run))
    known = [mode for mode in load_taxonomy("mast").labels if mode in modes.values()]
    for native in (native for native, mode in modes.items() if mode is None):
        into.skip(f"mode outside the taxonomy, its run kept if it has another: {native}")
    if not known:
        into.skip("no mode is marked")
        return
    log, note = _log(run.trace)
    row = make_row(
        name,
        source=f"mast/{run.mas_name}",
        agent=run.mas_name,
        task=_task(log),
        actual=log[-END_CHARS:],
        trace=clip(log, EXCERPT_CHARS),
        labels=known,
        native=[native for mode in known for native, found in modes.items() if found == mode],
    )
    into.add(where, row, note)


def _modes(run: _Run) -> Iterator[tuple[str, str | None]]:
    """The modes voted for, as published, and what they are in the preset; None if it has no such mode."""
    labels = load_taxonomy("mast").labels
    by_code = dict(zip(CODES, labels, strict=True))
    for code, vote in (run.mast_annotation or {}).items():
        if vote:
            yield code, by_code.get(code)
    for vote in run.annotations or ():
        if vote.yes:
            native = vote.mode.strip().splitlines()[0].strip()
            yield native, canonical(native.lstrip("0123456789. "), labels, OTHER_TITLES)


def _name(run: _Run) -> str:
    content = json.dumps([run.llm_name, run.trace], sort_keys=True, default=str)
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:8]
    return "-".join(part for part in ("mast", run.mas_name, run.benchmark_name, run.trace_id, digest) if part)


def _log(trace: object) -> tuple[str, str]:
    """The run's own log, and what annotators left in it."""
    if isinstance(trace, dict) and "trajectory" in (parts := cast(dict[str, object], trace)):
        trace = parts["trajectory"]
    if isinstance(trace, str) and trace.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):  # Python's own notation, or a log that happens to begin like this
            trace = cast(object, json.loads(trace))
    if isinstance(trace, str):
        notes = [found[0] for found in NOTE.finditer(trace) if "options:" in found[0] or "text:" in found[0]]
        for note in notes:
            trace = trace.replace(note, "")
        return trace.strip(), "\n".join(notes)
    notes: list[str] = []
    return as_text(_without_notes(cast(object, trace), notes)).strip(), "\n".join(notes)


def _without_notes(value: object, notes: list[str]) -> object:
    if isinstance(value, list):
        return [_without_notes(item, notes) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    entries = cast(dict[str, object], value)
    if "note" in entries:
        notes.append(as_text(entries["note"]))
    return {key: _without_notes(item, notes) for key, item in entries.items() if key != "note"}


def _task(log: str) -> str:
    found = next((match for pattern in TASK if (match := pattern.search(log))), None)
    if found:
        return found[1]
    return log if len(log) <= HEAD_CHARS else f"{log[:HEAD_CHARS]}…"
