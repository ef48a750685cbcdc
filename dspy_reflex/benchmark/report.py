"""A benchmark as a Markdown file and, for root causes, pictures of confusion and confidence. Labels and ids only, no failure text.

The same report gives the same bytes, dates and versions left out. A folder gets all files or, if one cannot be made,
none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark.confidence import PRECISION, ConfidenceScore
from dspy_reflex.benchmark.markdown import safe, table
from dspy_reflex.benchmark.pictures import NO_ANSWER, confusion_figure, png, reliability_figure
from dspy_reflex.benchmark.predict import CauseAnswer
from dspy_reflex.benchmark.results import AbstainReport, CauseReport, RuleReport
from dspy_reflex.benchmark.scores import AbstainRow, CauseRow, Column, RuleRow, Versus
from dspy_reflex.benchmark.statistics import BINS, Interval
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.files import write_atomic

Report = CauseReport | RuleReport | AbstainReport
MISTAKES = 5
"""How many of the most confident mistakes are listed."""
WORST = 3
"""How many of the worst classes are named."""
ABOUT_CONFIDENCE = (
    f"ECE: {BINS} bins of equal width. By chance: the ECE below which 95 of 100 perfectly calibrated programs with these "
    "confidences would stay. Before: of the confidence that the model stated. AUROC: how often a right answer is surer "
    f"than a wrong one. Covered: the largest share of failures whose answers, the surest first, are right {PRECISION:.0%} "
    "of the time; its cut is chosen on these rows."
)


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write `report.md`, and for root causes `confusion.png` and `reliability.png` of the first row.

    Returns:
        The files. There is no `reliability.png` where no answer came with a confidence.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    files = {"report.md": render(report).encode()}
    if isinstance(report, CauseReport):
        files["confusion.png"] = confusion_png(report)
        if sure := report.rows[0].confidence:
            files["reliability.png"] = png(reliability_figure(sure.bins, sure.bins_before, _title(report)))
    for name, content in files.items():
        write_atomic(folder / name, content)
    return [folder / name for name in files]


def render(report: Report) -> str:
    """The Markdown text of a report."""
    kind, body = _kind_and_body(report)
    about = (
        f"{report.n} failures in {report.units} units (families or groups) of {safe(report.dataset or 'a data set')}."
    )
    how = "Intervals: 95 %, bootstrap over units. Refusals and unparsable answers are misses."
    return "\n\n".join([f"# Benchmark of {kind}", f"{about} {how}", *body]) + "\n"


def _kind_and_body(report: Report) -> tuple[str, list[str]]:
    if isinstance(report, CauseReport):
        return "root causes", _cause_body(report)
    if isinstance(report, RuleReport):
        return "rules", _rule_body(report)
    return "abstention", [
        "Nothing should be blamed here: asking for a person is right, and an unusable answer asks.",
        _abstain_table(report.rows),
    ]


def _abstain_table(rows: Sequence[AbstainRow]) -> str:
    head = ("name", "kind", "needs review", "refused", "unparsable")
    lines = [
        (_name(row), row.kind, _score(row.needs_review, row.interval), str(row.refusals), str(row.unparsable))
        for row in rows
    ]
    return table(head, lines)


def _cause_body(report: CauseReport) -> list[str]:
    body = ["## Scores", _cause_table(report.rows), "## Confidence", _confidence_table(report.rows)]
    body += ["## Per class", _class_table(report.rows)]
    body += [f"## Confusion of {safe(report.rows[0].name)}", _confusion_table(report)]
    body += _slices(report, _cause_table)
    return [*body, "## Where it loses", _worst(report.rows[0]), _mistakes(report)]


def _rule_body(report: RuleReport) -> list[str]:
    body = ["## Scores", _rule_table(report.rows), "## Parts", _parts_table(report.rows)]
    body += _slices(report, _rule_table)
    lowest = sorted(report.rows[0].parts.items(), key=lambda item: item[1].score)[:WORST]
    named = ", ".join(f"{name} ({part.score:.2f})" for name, part in lowest)
    return [*body, "## Where it loses", f"Lowest parts of {safe(report.rows[0].name)}: {named}."]


def _slices(report: CauseReport | RuleReport, table: Callable[[Any], str]) -> list[str]:
    parts: list[str] = []
    for part in report.slices:
        parts += [f"## {safe(report.by or '')}: {safe(part.value)} (n={part.n})", table(part.rows)]
    return parts


def _cause_table(rows: Sequence[CauseRow]) -> str:
    head = (
        "name",
        "kind",
        "macro-F1",
        "accuracy",
        "hit rate",
        "review",
        "right unasked",
        "refused",
        "unparsable",
        "minus first",
        "p",
    )
    lines = [
        (
            _name(row), row.kind, _score(row.macro_f1, row.interval), _score(row.accuracy, row.accuracy_interval),
            f"{row.hit_rate:.2f}", f"{row.needs_review:.2f}", _maybe(row.accuracy_unasked), str(row.refusals), str(row.unparsable),
            _versus(row.vs_first), _maybe(row.vs_first.mcnemar_p if row.vs_first else None, 3),
        )
        for row in rows
    ]  # fmt: skip
    return table(head, lines)


def _confidence_table(rows: Sequence[CauseRow]) -> str:
    head = ("name", "ECE", "by chance", "ECE before", "Brier", "Brier before", "AUROC", f"covered at {PRECISION:.0%}")
    lines = [
        (
            _name(row), f"{sure.ece:.3f}", f"{sure.ece_by_chance:.3f}", _maybe(sure.ece_before, 3), f"{sure.brier:.3f}",
            _maybe(sure.brier_before, 3), _auroc(sure), f"{sure.coverage:.2f}",
        )
        for row in rows if (sure := row.confidence)
    ]  # fmt: skip
    return f"{ABOUT_CONFIDENCE}\n\n{table(head, lines)}" if lines else "No answer came with a confidence."


def _auroc(sure: ConfidenceScore) -> str:
    return "" if sure.auroc is None else _score(sure.auroc, sure.auroc_interval)


def _class_table(rows: Sequence[CauseRow]) -> str:
    head = ("label", "n", "precision", "recall", *(f"F1 {safe(row.name)}" for row in rows))
    lines = [
        (
            score.label, str(score.support), f"{score.precision:.2f}", f"{score.recall:.2f}",
            *(f"{row.per_class[place].f1:.2f}" for row in rows),
        )
        for place, score in enumerate(rows[0].per_class)
    ]  # fmt: skip
    return f"Precision and recall are those of {safe(rows[0].name)}.\n\n{table(head, lines)}"


def _rule_table(rows: Sequence[RuleRow]) -> str:
    head = ("name", "kind", "score", "refused", "unparsable", "minus first")
    lines = [
        (
            _name(row), row.kind, _score(row.score, row.interval), str(row.refusals), str(row.unparsable),
            _versus(row.vs_first),
        )
        for row in rows
    ]  # fmt: skip
    return table(head, lines)


def _parts_table(rows: Sequence[RuleRow]) -> str:
    lines = [
        (part, *(_score(row.parts[part].score, row.parts[part].interval) for row in rows)) for part in rows[0].parts
    ]
    return table(("part", *(safe(row.name) for row in rows)), lines)


def confusion(report: CauseReport) -> list[list[int]]:
    """Answers of the first row: a line per gold label, a column per answer, the last one for no answer."""
    answers = report.columns[0].answers
    counts = Counter((case.root_cause, answer.label) for case, answer in zip(report.cases, answers, strict=True))
    return [[counts[gold, label] for label in (*report.labels, None)] for gold in report.labels]


def _confusion_table(report: CauseReport) -> str:
    lines = [
        (label, *(str(count) for count in counts))
        for label, counts in zip(report.labels, confusion(report), strict=True)
    ]
    return table(("gold \\ answer", *report.labels, NO_ANSWER), lines)


def _worst(row: CauseRow) -> str:
    lowest = sorted((score for score in row.per_class if score.support), key=lambda score: score.f1)[:WORST]
    named = ", ".join(f"{safe(score.label)} (F1 {score.f1:.2f}, n={score.support})" for score in lowest)
    return f"Lowest classes of {safe(row.name)}: {named}."


def _mistakes(report: CauseReport) -> str:
    """The mistakes that the first row was surest of."""
    column: Column[CauseAnswer] = report.columns[0]
    pairs = zip(report.cases, column.answers, strict=True)
    wrong = [(case, answer) for case, answer in pairs if answer.label not in (None, case.root_cause)]
    wrong.sort(key=lambda pair: -(pair[1].confidence or 0.0))
    lines = [_mistake(case, answer) for case, answer in wrong[:MISTAKES]]
    if not lines:
        return "It made no mistakes here."
    return f"Its most confident mistakes:\n\n{table(('id', 'gold', 'answer', 'confidence', 'acceptable'), lines)}"


def _mistake(case: LabelledFailure, answer: CauseAnswer) -> tuple[str, ...]:
    acceptable = "yes" if answer.label in case.also_acceptable else "no"
    return (case.id, str(case.root_cause), str(answer.label), _maybe(answer.confidence), acceptable)


def _name(row: CauseRow | RuleRow | AbstainRow) -> str:
    return f"{row.name} (saw {row.seen} of these rows)" if row.seen else row.name


def _score(value: float, interval: Interval) -> str:
    return f"{value:.2f} ({interval[0]:.2f}, {interval[1]:.2f})"


def _versus(versus: Versus | None) -> str:
    return "" if versus is None else f"{versus.difference:+.2f} ({versus.interval[0]:+.2f}, {versus.interval[1]:+.2f})"


def _maybe(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def confusion_png(report: CauseReport) -> bytes:
    """The confusion matrix of the first row as a picture.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    return png(confusion_figure(confusion(report), report.labels, _title(report)))


def _title(report: CauseReport) -> str:
    return f"{report.rows[0].name}, n={report.n}"
