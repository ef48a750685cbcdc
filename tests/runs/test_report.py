"""The report of a run says what is known, and nothing else is needed to read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dspy_reflex.benchmark.confidence import Bin
from dspy_reflex.errors import MissingExtraError
from dspy_reflex.runs import pictures
from dspy_reflex.runs.document import run_document
from dspy_reflex.runs.folder import read_run
from dspy_reflex.runs.pages import markdown
from dspy_reflex.runs.report import run_json, write_run_report
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.library import current
from tests.cli.runner import files_below
from tests.optimize.compiles import ROOT
from tests.runs.folders import HOSTILE, config, prediction, write_run

PICTURES = {"candidates.png", "cost.png", "learning_curve.png", "confusion.png", "reliability.png"}


def report(folder: Path) -> str:
    """The Markdown of a run; no picture is drawn for it."""
    return markdown.render(run_document(read_run(folder)))


def test_a_report_says_what_was_compiled_and_how_well(tmp_path: Path) -> None:
    """Scores with intervals, candidates, classes, demos, cost, mistakes, options."""
    text = report(write_run(tmp_path / "mine"))
    for line in (
        "# Compile of root_cause@0123456789ab",
        r"| compiled | macro-F1 0.620 \[0.400, 0.800\], n=8, val (chosen on it) |",
        r"| uncompiled | macro-F1 0.310 \[0.100, 0.500\], n=8, val |",
        "| 1 | 0.2000 | 4 | 3 | 300 | 12 | 1,300 | dropped early |",
        "| 2 | 0.6200 | 8 | 3 | 310 | 20 | 2,600 | chosen |",
        r"| 10 | 0.400 | \[0.200, 0.600\] |",
        "| red | 3 | 1.00 | 0.67 | 0.80 |",
        "Confidence of 7 answers, as stated: ECE 0.343, Brier 0.237, 0.714 right.",
        "| temperature | 1.7 |",
        "+- red: fire +0.9",
        "| blue | 0 |",
        "| t0 | red | a model |",
        "| evaluate | 36 | 3,900 | 720 | 0 | 1 | 10 |",
        "| fake/1 | 40 | 4,300 | 800 | 0.0125 |",
        "Wrong answers: 2, the surest first.",
        "| v4 | green | blue | 0.85 |",
        "| v5 | green | unparsable |",
        "| settings.max_demos | 3 |",
    ):
        assert line in text.splitlines()
    assert text.index("| v4 |") < text.index("| v2 |")


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """Pictures too; nothing is left beside them."""
    one, other = write_run(tmp_path / "one"), write_run(tmp_path / "other")
    before = set(files_below(one))
    write_run_report(one)
    write_run_report(other)
    assert files_below(one) == files_below(other)
    assert set(files_below(one)) - before == {"report.md", "report.html", *PICTURES}


def test_every_picture_of_the_report_is_beside_it_and_in_the_page(tmp_path: Path) -> None:
    """The page needs no file but itself."""
    folder = write_run(tmp_path / "mine")
    write_run_report(folder)
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert text == report(folder)
    assert set(re.findall(r"\]\((\w+\.png)\)", text)) == PICTURES
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,iVBOR") == len(PICTURES)


def test_hostile_text_from_failures_stays_text(tmp_path: Path) -> None:
    """In warnings, ids and the instruction."""
    odd = prediction(1, "red", "green") | {"id": HOSTILE}
    folder = write_run(tmp_path / "mine", predictions=[odd], instructions=f"Name the colour.\n{HOSTILE}")
    write_run_report(folder)
    text, page = report(folder), (folder / "report.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    outside = text[: text.index("````diff")] + text[text.rindex("````") :]
    assert "<script>" not in outside
    assert "\n# [" not in text


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    """No empty heading, no picture of nothing."""
    folder = write_run(tmp_path / "mine", candidates=[], ledger={}, coverage={}, warnings=[], learning_curve=None)
    for name in ("program.json", "uncompiled.json", "predictions.jsonl", "config.json"):
        (folder / name).unlink()
    write_run_report(folder)
    assert re.findall(r"^## (.+)$", report(folder), re.MULTILINE) == ["In short", "Answers"]
    assert set(files_below(folder)) == {"result.json", "report.md", "report.html"}


def test_coverage_is_counted_where_the_result_does_not_say(tmp_path: Path) -> None:
    """A label without a demo is what one looks for."""
    assert "| blue | 0 |" in report(write_run(tmp_path / "mine", coverage={}))


def test_a_run_of_rules_lists_the_worst_and_has_no_confusion(tmp_path: Path) -> None:
    """Rules are better or worse, and not right or wrong."""
    rules = [{"id": f"v{n}", "gold": "red", "problem": "", "score": n / 10} for n in (9, 1, 5)]
    text = report(write_run(tmp_path / "mine", predictions=rules))
    assert "The lowest scores of 3 rules:" in text
    assert text.index("| v1 | 0.10 |") < text.index("| v5 | 0.50 |") < text.index("| v9 | 0.90 |")
    assert "confusion.png" not in text
    assert "No usable answer" not in text


def test_a_taxonomy_is_named_and_not_printed(tmp_path: Path) -> None:
    """Its options hold all of it."""
    taxonomy = {"name": "colours", "causes": [{"name": "red", "definition": "long " * 100}]}
    text = report(write_run(tmp_path / "mine", asked=config(taxonomy=taxonomy)))
    assert re.search(r"^\| taxonomy \| colours [0-9a-f]{16} \|$", text, re.MULTILINE)
    assert "long long" not in text


def test_a_run_without_mistakes_says_so(tmp_path: Path) -> None:
    """And a picture can be drawn of a single answer."""
    folder = write_run(tmp_path / "mine", predictions=[prediction(0, "red", "red")])
    assert "Every answer was right." in report(folder)
    document = run_document(read_run(folder))
    assert all(picture.draw().startswith(b"\x89PNG") for picture in document.pictures[-2:])


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one picture cannot be drawn, no file is written."""

    def broken(_: tuple[Bin, ...], __: int) -> bytes:
        raise OSError("no fonts")

    folder = write_run(tmp_path / "mine")
    before = files_below(folder)
    monkeypatch.setattr(pictures, "reliability_png", broken)
    with pytest.raises(OSError, match="no fonts"):
        write_run_report(folder)
    assert files_below(folder) == before


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_a_missing_package_is_named_by_its_extra(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a traceback at the end of a long compile."""
    folder = write_run(tmp_path / "mine")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"\[compile\]"):
        write_run_report(folder)


def test_reading_the_room_costs_no_plotter() -> None:
    """A compile imports it at its start and draws at its end."""
    probe = "import dspy_reflex.runs.report, sys; print([n for n in ('matplotlib', 'jinja2', 'scipy', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_bundled_program_is_reported_at_a_readable_length(tmp_path: Path) -> None:
    """Its instruction has lines of 37,000 characters."""
    library = ROOT / "programs"
    program = read(library / "root_cause" / f"{current(library, 'root_cause')['offline/1']}.json")
    folder = write_run(tmp_path / "mine", program=program, predictions=[])
    shutil.copy(library / "root_cause" / f"{current(library, 'root_cause')['any']}.json", folder / "uncompiled.json")
    text = report(folder)
    assert "+Cues from labelled examples" in text
    assert f"| {program.data['demos'][0]['id']} |" in text
    assert len(text) < 20_000


def test_the_same_is_to_be_had_as_json(tmp_path: Path) -> None:
    """Computed figures beside what was read."""
    told = json.loads(json.dumps(run_json(read_run(write_run(tmp_path / "mine")))))
    assert [each["id"] for each in told["mistakes"]] == ["v4", "v2"]
    assert [each["id"] for each in told["unusable"]] == ["v5"]
    assert sum(each["n"] for each in told["reliability"]) == 7
    assert "+- red: fire +0.9" in told["instruction_diff"]
    assert told["result"]["scores"]["value"] == 0.62
