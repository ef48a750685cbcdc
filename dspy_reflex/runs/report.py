"""The report of a run: `report.md` with its pictures beside it, and `report.html`, which is whole by itself.

The same run folder gives the same bytes.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark.confidence import bins
from dspy_reflex.files import write_atomic
from dspy_reflex.runs import answers
from dspy_reflex.runs.document import VERSIONS, run_document
from dspy_reflex.runs.folder import Run, read_run
from dspy_reflex.runs.pages import html, markdown
from dspy_reflex.runs.prompt import demos_of, instruction_diff

MARKDOWN, HTML = "report.md", "report.html"


def write_run_report(folder: Path) -> None:
    """Write `report.md`, `report.html` and the pictures into a run folder: all of them or, if one cannot be made, none.

    Raises:
        ReflexError: The run cannot be read.
        MissingExtraError: matplotlib or Jinja2 is not installed.
    """
    document = run_document(read_run(folder))
    files = {picture.name: picture.draw() for picture in document.pictures}
    texts = {MARKDOWN: markdown.render(document), HTML: html.render(document, files)}
    files.update((name, text.encode()) for name, text in texts.items())
    for name, content in files.items():
        write_atomic(folder / name, content)


def run_json(run: Run) -> dict[str, Any]:
    """The same as plain JSON types."""
    diff = instruction_diff(run.uncompiled, run.program, VERSIONS)
    confidences, right = answers.sure(run.predictions)
    return {
        "run": str(run.folder),
        "config": dict(run.config),
        "result": run.result.model_dump(mode="json"),
        "demos": [asdict(demo) for demo in demos_of(run.program)],
        "instruction_diff": list(diff.lines) if diff else None,
        "reliability": [asdict(each) for each in bins(confidences, right)],
        "mistakes": [one.model_dump(mode="json") for one in answers.mistakes(run.predictions)],
        "unusable": [one.model_dump(mode="json") for one in answers.unusable(run.predictions)],
    }
