"""Reports say how well, how sure and where it loses, and quote nothing of a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.benchmark import report as reports
from dspy_reflex.benchmark.confidence import Bin
from dspy_reflex.benchmark.pictures import reliability_figure
from dspy_reflex.benchmark.report import confusion, render, write_report
from dspy_reflex.benchmark.results import CauseReport
from dspy_reflex.benchmark.runner import benchmark_cause, benchmark_rule
from dspy_reflex.records.failure import Failure
from dspy_reflex.runtime.lm.model import Completion
from tests.benchmark.contest import contender, knows, proposes, row, rows, says

PNG = b"\x89PNG"


def partly(prompt: str) -> Completion:
    """Right but for green rows, and silent on one."""
    if "task 0\n" in prompt:
        return Completion("")
    return says("red", 0.99 if "task 4\n" in prompt else 0.6) if "green" in prompt else knows(prompt)


def result() -> CauseReport:
    """A report with mistakes in it."""
    contenders = [contender(partly), contender(knows, "other")]
    return benchmark_cause(rows(9), contenders, baselines=False, dataset="mine", by="severity")


def test_a_report_names_scores_classes_and_mistakes_and_no_text() -> None:
    """Ids and labels only."""
    text = render(result())
    assert "9 failures in 9 units" in text
    assert "| mine | program | 0.50 (" in text
    assert "Lowest classes of mine: green (F1 0.00, n=3)" in text
    assert "## severity: medium (n=9)" in text
    assert "| f4 | green | red | 0.99 | no |" in text
    assert text.index("| f4 |") < text.index("| f1 |")
    assert "it was" not in text
    assert "task" not in text


def test_the_confusion_matrix_counts_every_row_once() -> None:
    """Silence has a column."""
    assert confusion(result()) == [[2, 0, 0, 1], [3, 0, 0, 0], [0, 0, 3, 0]]


def test_files_are_written_whole_and_the_same_every_time(tmp_path: Path) -> None:
    """No dates, no versions, nothing left beside them."""
    paths = write_report(result(), tmp_path / "new" / "run")
    first = [path.read_bytes() for path in paths]
    assert [path.name for path in paths] == ["report.md", "confusion.png", "reliability.png"]
    for picture in first[1:]:
        assert picture.startswith(PNG)
        assert b"Matplotlib" not in picture
    write_report(result(), tmp_path / "new" / "run")
    assert [path.read_bytes() for path in paths] == first
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)


def test_a_picture_that_cannot_be_drawn_leaves_no_half_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files or none."""

    def broken(_: CauseReport) -> bytes:
        raise OSError("no fonts")

    monkeypatch.setattr(reports, "confusion_png", broken)
    with pytest.raises(OSError, match="no fonts"):
        write_report(result(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_report_says_how_far_confidence_can_be_believed() -> None:
    """Before and after calibration, beside what chance alone would give."""
    curve = {"slope": 1.0, "shift": -2.0, "n": 72}
    programs = [contender(partly, calibration=curve), contender(knows, "other")]
    report = benchmark_cause(rows(9), programs, baselines=False)
    sure = report.rows[0].confidence
    assert sure is not None
    assert f"| mine | {sure.ece:.3f} | {sure.ece_by_chance:.3f} | {sure.ece_before:.3f} |" in render(report)
    assert "| other | 0.100 |" in render(report)


def test_the_picture_shows_both_confidences_if_there_are_two() -> None:
    """And the line that a perfect program lies on."""

    def drawn(bins: tuple[Bin, ...], before: tuple[Bin, ...]) -> list[str]:
        return reliability_figure(bins, before, "mine").axes[0].get_legend_handles_labels()[1]

    stated, calibrated = (Bin(9, 0.9, 0.5),), (Bin(9, 0.5, 0.5),)
    assert drawn(calibrated, stated) == ["as sure as right", "as stated", "calibrated"]
    assert drawn(stated, ()) == ["as sure as right", "as stated"]


def test_without_confidence_there_is_no_picture_of_it(tmp_path: Path) -> None:
    report = benchmark_cause(rows(9), [contender(lambda _: says("red", "nan"))], baselines=False)
    assert [path.name for path in write_report(report, tmp_path)] == ["report.md", "confusion.png"]
    assert "No answer came with a confidence." in render(report)


def test_an_id_cannot_break_the_table() -> None:
    """Ids come from the failures and are not to be trusted."""
    odd = row(1, "green").model_copy(update={"failure": Failure(id="a|b\n# <b>[x](y)", task="t", actual_outcome="a")})
    text = render(benchmark_cause([odd], [contender(lambda _: says("red"))], baselines=False))
    assert r"| a\|b # \<b\>\[x\](y) | green | red | 0.90 | no |" in text


def test_a_report_without_mistakes_says_so() -> None:
    """And names rows that a program had seen."""
    some = rows(6)
    program = contender(knows, train=[some[0].row_hash])
    text = render(benchmark_cause(some, [program], baselines=False, allow_seen=True))
    assert "It made no mistakes here." in text
    assert "mine (saw 1 of these rows)" in text


def test_a_rule_report_has_its_parts_and_no_picture(tmp_path: Path) -> None:
    """And the lowest of them."""
    program = contender(lambda _: proposes("SOUL", "Wait."), program="rule")
    some = [item.model_copy(update={"component": "TOOLS"}) for item in rows(6)]
    paths = write_report(benchmark_rule(some, [program], baselines=False), tmp_path)
    assert [path.name for path in paths] == ["report.md"]
    assert "Lowest parts of mine: component (0.00), trigger (0.00), bound (0.00)." in paths[0].read_text(
        encoding="utf-8"
    )
