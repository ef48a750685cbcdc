"""A benchmark as a Markdown file and, for root causes, a confusion matrix as PNG. Labels and ids only, no failure text.

The same report gives the same bytes, dates and versions left out. A folder gets both files or, if one cannot be made,
neither.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark.predict import CauseAnswer
from dspy_reflex.benchmark.results import AbstainReport, CauseReport, RuleReport
from dspy_reflex.benchmark.scores import AbstainRow, CauseRow, Column, RuleRow, Versus
from dspy_reflex.benchmark.statistics import Interval
from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.files import write_atomic
from dspy_reflex.untrusted import neutralise

NO_ANSWER = "no answer"
Report = CauseReport | RuleReport | AbstainReport
MISTAKES = 5
"""How many of the most confident mistakes are listed."""
WORST = 3
"""How many of the worst classes are named."""


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write `report.md`, and for root causes `confusion.png` of the first row; the files are returned.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    files = {"report.md": render(report).encode()}
    if isinstance(report, CauseReport):
        files["confusion.png"] = confusion_png(report)
    for name, content in files.items():
        write_atomic(folder / name, content)
    return [folder / name for name in files]


def render(report: Report) -> str:
    """The Markdown text of a report."""
    kind, body = _kind_and_body(report)
    about = (
        f"{report.n} failures in {report.units} units (families or groups) of {_safe(report.dataset or 'a data set')}."
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
    return _table(head, lines)


def _cause_body(report: CauseReport) -> list[str]:
    body = ["## Scores", _cause_table(report.rows), "## Per class", _class_table(report.rows)]
    body += [f"## Confusion of {_safe(report.rows[0].name)}", _confusion_table(report)]
    body += _slices(report, _cause_table)
    return [*body, "## Where it loses", _worst(report.rows[0]), _mistakes(report)]


def _rule_body(report: RuleReport) -> list[str]:
    body = ["## Scores", _rule_table(report.rows), "## Parts", _parts_table(report.rows)]
    body += _slices(report, _rule_table)
    lowest = sorted(report.rows[0].parts.items(), key=lambda item: item[1].score)[:WORST]
    named = ", ".join(f"{name} ({part.score:.2f})" for name, part in lowest)
    return [*body, "## Where it loses", f"Lowest parts of {_safe(report.rows[0].name)}: {named}."]


def _slices(report: CauseReport | RuleReport, table: Callable[[Any], str]) -> list[str]:
    parts: list[str] = []
    for part in report.slices:
        parts += [f"## {_safe(report.by or '')}: {_safe(part.value)} (n={part.n})", table(part.rows)]
    return parts


def _cause_table(rows: Sequence[CauseRow]) -> str:
    head = (
        "name",
        "kind",
        "macro-F1",
        "accuracy",
        "hit rate",
        "Brier",
        "ECE",
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
            f"{row.hit_rate:.2f}", _maybe(row.brier), _maybe(row.ece), f"{row.needs_review:.2f}", _maybe(row.accuracy_unasked), str(row.refusals), str(row.unparsable),
            _versus(row.vs_first), _maybe(row.vs_first.mcnemar_p if row.vs_first else None, 3),
        )
        for row in rows
    ]  # fmt: skip
    return _table(head, lines)


def _class_table(rows: Sequence[CauseRow]) -> str:
    head = ("label", "n", "precision", "recall", *(f"F1 {_safe(row.name)}" for row in rows))
    lines = [
        (
            score.label, str(score.support), f"{score.precision:.2f}", f"{score.recall:.2f}",
            *(f"{row.per_class[place].f1:.2f}" for row in rows),
        )
        for place, score in enumerate(rows[0].per_class)
    ]  # fmt: skip
    return f"Precision and recall are those of {_safe(rows[0].name)}.\n\n{_table(head, lines)}"


def _rule_table(rows: Sequence[RuleRow]) -> str:
    head = ("name", "kind", "score", "refused", "unparsable", "minus first")
    lines = [
        (
            _name(row), row.kind, _score(row.score, row.interval), str(row.refusals), str(row.unparsable),
            _versus(row.vs_first),
        )
        for row in rows
    ]  # fmt: skip
    return _table(head, lines)


def _parts_table(rows: Sequence[RuleRow]) -> str:
    lines = [
        (part, *(_score(row.parts[part].score, row.parts[part].interval) for row in rows)) for part in rows[0].parts
    ]
    return _table(("part", *(_safe(row.name) for row in rows)), lines)


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
    return _table(("gold \\ answer", *report.labels, NO_ANSWER), lines)


def _worst(row: CauseRow) -> str:
    lowest = sorted((score for score in row.per_class if score.support), key=lambda score: score.f1)[:WORST]
    named = ", ".join(f"{_safe(score.label)} (F1 {score.f1:.2f}, n={score.support})" for score in lowest)
    return f"Lowest classes of {_safe(row.name)}: {named}."


def _mistakes(report: CauseReport) -> str:
    """The mistakes that the first row was surest of."""
    column: Column[CauseAnswer] = report.columns[0]
    pairs = zip(report.cases, column.answers, strict=True)
    wrong = [(case, answer) for case, answer in pairs if answer.label not in (None, case.root_cause)]
    wrong.sort(key=lambda pair: -(pair[1].confidence or 0.0))
    lines = [_mistake(case, answer) for case, answer in wrong[:MISTAKES]]
    if not lines:
        return "It made no mistakes here."
    return f"Its most confident mistakes:\n\n{_table(('id', 'gold', 'answer', 'confidence', 'acceptable'), lines)}"


def _mistake(case: LabelledFailure, answer: CauseAnswer) -> tuple[str, ...]:
    acceptable = "yes" if answer.label in case.also_acceptable else "no"
    return (case.id, str(case.root_cause), str(answer.label), _maybe(answer.confidence), acceptable)


def _table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    rows = [list(map(_safe, line)) for line in lines]
    titles = list(map(_safe, head))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, ["---"] * len(titles), *rows))


def _safe(text: str) -> str:
    """A name or id that cannot break a table or become markup: ids come from the failures."""
    plain = " ".join(neutralise(text).split())
    return "".join(f"\\{letter}" if letter in "|\\`<>*[]" else letter for letter in plain)


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
    picture = io.BytesIO()
    _figure(report).savefig(picture, format="png", dpi=120, metadata={"Software": None})
    return picture.getvalue()


def _figure(report: CauseReport) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a picture of the confusion matrix", "compile") from None
    size = 3.0 + 0.6 * len(report.labels)
    figure: Any = Figure(figsize=(size + 0.6, size), layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display, and without the state that pyplot keeps
    axes: Any = figure.subplots()
    counts = confusion(report)
    axes.imshow(counts, cmap="Blues", aspect="auto")
    top = max(max(line) for line in counts)
    for y, line in enumerate(counts):
        for x, count in enumerate(line):
            axes.text(x, y, str(count), ha="center", va="center", color="white" if count > top / 2 else "black")
    axes.set_xticks(range(len(report.labels) + 1), [*report.labels, NO_ANSWER], rotation=45, ha="right")
    axes.set_yticks(range(len(report.labels)), report.labels)
    axes.set_xlabel("answer")
    axes.set_ylabel("gold")
    axes.set_title(f"{report.rows[0].name}, n={report.n}", parse_math=False)
    return figure
