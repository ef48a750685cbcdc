"""The card of a data set: a datasheet in Markdown, of what is measured here and what people say in `About`.

It holds no date and nothing of the machine, so that the same rows and the same words give the same card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dspy_reflex.evalset.agreement import Agreement, agreement
from dspy_reflex.evalset.checks.shortcut import ENOUGH, Shortcuts, measure_shortcuts
from dspy_reflex.evalset.labelled import LABEL_FIELDS, EvalSet, LabelledFailure
from dspy_reflex.evalset.publishing.about import About
from dspy_reflex.evalset.publishing.front_matter import extra_fields, front_matter, hub_split
from dspy_reflex.evalset.stats import NONE, to_frame
from dspy_reflex.evalset.writing import FAILURE_FIELDS, MANIFEST
from dspy_reflex.records.failure import Failure

ROUNDED = (
    "`datasets.load_dataset` rounds floating-point numbers to about ten digits, and gives a field that a row lacks as "
    "None; the files have them as they were."
)
Section = tuple[str, Iterable[str]]
"""A heading, and paragraphs or tables."""


def card_of(evalset: EvalSet, about: About, version: str) -> str:
    """The whole text of `README.md`.

    Args:
        evalset: What is published, its splits in the order of the table.
        about: What people say about it.
        version: What names this content.

    Raises:
        DatasetError: A split has a name that `datasets` cannot load.
        MissingExtraError: A library is not installed.
    """
    rows = [row for rows in evalset.splits.values() for row in rows]
    sections: list[Section] = [
        ("How it was made", [about.made]),
        ("Labels", [about.labelled]),
        ("Agreement before adjudication", _agreement(evalset)),
        ("Splits", [about.splits, *_file_names(evalset)]),
        ("What gives the cause away", _shortcuts(evalset.rows)),
        ("Lengths", _lengths(evalset)),
        ("Fields", [_fields(rows, about), ROUNDED]),
        ("Limits", [about.limits]),
        ("Licence and version", _version(about, version)),
    ]
    head = [f"---\n{front_matter(about, evalset.splits)}\n---", f"# {about.title}", about.summary, _counts(evalset)]
    parts = head + [part for title, paragraphs in sections for part in (f"## {title}", *paragraphs)]
    return "\n\n".join(parts) + "\n"


def _counts(evalset: EvalSet) -> str:
    """Rows and families of each split, and rows by cause."""
    causes = [*evalset.taxonomy.labels, None]
    lines = [_counted(name, rows, causes) for name, rows in evalset.splits.items()]
    if len(lines) > 1:
        lines.append(_counted("together", [row for rows in evalset.splits.values() for row in rows], causes))
    return _table(["split", "rows", "families", *(cause or NONE for cause in causes)], lines)


def _counted(name: str, rows: Sequence[LabelledFailure], causes: Sequence[str | None]) -> list[object]:
    by_cause = Counter(row.root_cause for row in rows)
    return [name, len(rows), len({row.unit for row in rows}), *(by_cause[cause] for cause in causes)]


def _file_names(evalset: EvalSet) -> Iterator[str]:
    yield "A family (or group) is in one split only; a row without either counts as a family of its own."
    for name in evalset.splits:
        if hub_split(name, evalset.splits) != name:
            yield f"`{name}.jsonl` is loaded as the split `{hub_split(name, evalset.splits)}`; it has not been divided."


def _agreement(evalset: EvalSet) -> Iterator[str]:
    rows = [row for rows in evalset.splits.values() for row in rows]
    if not any(len({vote.annotator for vote in row.votes}) > 1 for row in rows):
        yield "Not known: no row has the votes of two annotators."
        return
    found = agreement(rows)
    one, other = (_cell(name) for name in found.annotators)
    yield f"The votes of {one} and {other} on {found.n} rows, as given (field `votes`)."
    yield _table(["figure", "value"], _figures(found))
    yield _table(["split", "raw agreement"], _by_split(evalset, found.annotators))
    yield _table(["cause", "kappa against all others"], [(name, _3(value)) for name, value in found.kappa_of.items()])
    decided = sum(row.adjudication is not None for row in rows)
    yield f"{decided} rows were adjudicated, with the reason in `adjudication`."


def _by_split(evalset: EvalSet, annotators: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Agreement is no property of a whole set where one split was made to be hard."""
    for name, rows in evalset.splits.items():
        votes = [{vote.annotator: vote.root_cause for vote in row.votes} for row in rows]
        same = [one[annotators[0]] == one[annotators[1]] for one in votes if one.keys() >= set(annotators)]
        if same:
            yield name, f"{sum(same)} of {len(same)}"


def _figures(found: Agreement) -> list[tuple[str, str]]:
    low, high = found.interval
    return [
        ("raw agreement", _3(found.raw)),
        ("Cohen's kappa (95 % bootstrap interval over families)", f"{_3(found.kappa)} ({_3(low)} to {_3(high)})"),
        ("Krippendorff's alpha", _3(found.alpha)),
        ("one's label is the other's label or second choice", _3(found.first_or_second)),
    ]


def _shortcuts(rows: Sequence[LabelledFailure]) -> Iterator[str]:
    if len(rows) < ENOUGH or len({row.root_cause for row in rows}) < 2 or len({row.unit for row in rows}) < 2:
        yield f"Not measured: it takes {ENOUGH} rows with a cause, of two causes and two families."
        return
    found = measure_shortcuts(rows)
    yield f"Cross-validated accuracy on the {found.n} rows with a cause, each time with whole families held out."
    yield _table(["told from", "accuracy"], _told(found, rows))


def _told(found: Shortcuts, rows: Sequence[LabelledFailure]) -> list[tuple[str, str]]:
    alone = [
        (f"{name} alone", _3(score))
        for name, score in found.alone.items()
        if name == "length" or any(row.value(name) for row in rows)
    ]
    words = ("words (TF-IDF and logistic regression)", _3(found.words))
    return [("nothing (the most frequent cause)", _3(found.constant)), *alone, words]


def _lengths(evalset: EvalSet) -> Iterator[str]:
    """Characters by cause: what `data stats` shows, as deciles and median."""
    by_cause = to_frame(evalset).groupby("root_cause")["characters"]
    shares = {"10 %": 0.1, "median": 0.5, "90 %": 0.9}
    lines = [(cause, *(round(values.quantile(share)) for share in shares.values())) for cause, values in by_cause]
    yield "Characters of the text that a program is shown."
    yield _table(["cause", *shares], lines)


def _fields(rows: Sequence[LabelledFailure], about: About) -> str:
    known = {name: Failure.model_fields[name].description for name in FAILURE_FIELDS}
    label = {name: LabelledFailure.model_fields[name].description for name in LABEL_FIELDS}
    extra = {name: about.fields.get(name) for name in extra_fields(rows)}
    return _table(["field", "what"], [(f"`{name}`", text or "") for name, text in (known | label | extra).items()])


def _version(about: About, version: str) -> Iterator[str]:
    yield f"{about.licence}. Version `{version}`: the first digits of a SHA-256 over the names and bytes of all splits."
    yield f"`{MANIFEST}` has the SHA-256 of each split."


def _table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    ruled = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(_cell(str(cell)) for cell in line)} |" for line in ruled)


def _cell(text: str) -> str:
    """Text that neither ends a cell nor a row."""
    return " ".join(text.replace("|", "\\|").split())


def _3(value: float) -> str:
    return f"{value:.3f}"
