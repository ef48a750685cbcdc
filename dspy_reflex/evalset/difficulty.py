"""What gives a label away: cross-validated guesses from the words alone, or from one circumstance alone.

Whole units are held out (see `LabelledFailure.unit`), so nothing is learnt from a row's own family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.split import folds

FOLDS = 5
LENGTH_BINS = 10
"""Equally filled bins of length: enough for any shape of dependence."""
CIRCUMSTANCES = ("source", "length", "domain", "agent_id")
"""What should not tell the label: where a row is from, how long it is, whose agent it was."""

Rows = Sequence[LabelledFailure]
Deal = Sequence[tuple[Rows, Rows]]
"""Pairs of rows to learn from and rows to guess; every row is guessed once."""
Texts = Callable[[LabelledFailure], str]


def words_of(row: LabelledFailure) -> str:
    """All that a program sees of a row."""
    return "\n".join(row.inputs.values())


def tfidf_pipeline() -> Any:
    """TF-IDF with logistic regression, both as scikit-learn has them but for sublinear counts and more steps.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer  # pyright: ignore[reportMissingTypeStubs]
        from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingTypeStubs]
        from sklearn.pipeline import make_pipeline  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
    except ImportError:
        raise MissingExtraError("learning from words", "compile") from None
    steps: Any = TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=2000)
    return make_pipeline(*steps)


def dealt(rows: Rows, seed: int) -> Deal:
    """One deal of the rows' units to folds; dealing takes longer than guessing, so all guesses share it."""
    return folds(rows, FOLDS, seed)


def guesses_from_words(deal: Deal) -> dict[str, str]:
    """Row id to the label that TF-IDF with logistic regression gives it when its fold is held out."""
    return _guesses(deal, words_of, tfidf_pipeline)


def guesses_from(circumstance: str, deal: Deal) -> dict[str, str]:
    """Row id to the label that one circumstance alone gives it when its fold is held out."""
    rows = [row for _, held_out in deal for row in held_out]
    values = _binned_lengths(rows) if circumstance == "length" else {row.id: _value(row, circumstance) for row in rows}
    return _guesses(deal, lambda row: values[row.id], _one_value_pipeline)


def accuracy(rows: Rows, guesses: dict[str, str]) -> float:
    """Share of rows whose guess is their root cause."""
    return sum(guesses[row.id] == row.root_cause for row in rows) / len(rows)


def _guesses(deal: Deal, text: Texts, pipeline: Callable[[], Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for learn, held_out in deal:
        labels = [str(row.root_cause) for row in learn]
        if len(set(labels)) == 1:
            found.update({row.id: labels[0] for row in held_out})
            continue
        model = pipeline()
        model.fit([text(row) for row in learn], labels)
        answers = model.predict([text(row) for row in held_out])
        found.update({row.id: str(answer) for row, answer in zip(held_out, answers, strict=True)})
    return found


def _one_value_pipeline() -> Any:
    """A label's share among the rows with the same value; logistic regression over one-hot values."""
    from sklearn.feature_extraction.text import CountVectorizer  # pyright: ignore[reportMissingTypeStubs]
    from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingTypeStubs]
    from sklearn.pipeline import make_pipeline  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    whole: Any = _whole
    steps: Any = CountVectorizer(analyzer=whole), LogisticRegression(max_iter=2000)
    return make_pipeline(*steps)


def _whole(text: str) -> list[str]:
    return [text]


def _value(row: LabelledFailure, field: str) -> str:
    return str(row.value(field) or "")


def _binned_lengths(rows: Rows) -> dict[str, str]:
    """The tenth that a row's length falls in."""
    order = sorted(rows, key=lambda row: (len(words_of(row)), row.id))
    return {row.id: str(rank * LENGTH_BINS // len(order)) for rank, row in enumerate(order)}
