"""scikit-learn behind three small functions: the only place of the benchmark that sees its untyped objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dspy_reflex.errors import MissingExtraError

Classify = Callable[[str], tuple[str, float]]
"""A text to a label and its probability."""
ANY_WORD = r"\w+|[^\w\s]"
"""A word of any length, or a sign: short texts have no token to spare."""


def tfidf_logistic_regression(texts: Sequence[str], labels: Sequence[str]) -> Classify:
    """Fit TF-IDF with logistic regression, both as scikit-learn has them but for sublinear counts and more steps.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    sklearn = _sklearn()
    if len(set(labels)) == 1:  # nothing to learn, and scikit-learn refuses
        return lambda _: (labels[0], 1.0)
    model = sklearn.make_pipeline(
        sklearn.TfidfVectorizer(sublinear_tf=True), sklearn.LogisticRegression(max_iter=2000, class_weight=None)
    )
    model.fit(list(texts), list(labels))

    def classify(text: str) -> tuple[str, float]:
        probabilities = model.predict_proba([text])[0]
        best = int(probabilities.argmax())
        return str(model.classes_[best]), float(probabilities[best])

    return classify


def nearest_text(texts: Sequence[str]) -> Callable[[str], int]:
    """Index the texts by TF-IDF; the function returned finds the nearest by cosine, the first of equals.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    vectorizer = _sklearn().TfidfVectorizer(sublinear_tf=True, token_pattern=ANY_WORD)
    matrix = vectorizer.fit_transform(list(texts))
    # Rows have length one, so the dot product is the cosine.
    return lambda text: int((matrix @ vectorizer.transform([text]).T).toarray().ravel().argmax())


def medoid(texts: Sequence[str]) -> int:
    """The index of the text that is nearest to all the others, the first of equals.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    matrix = _sklearn().TfidfVectorizer(token_pattern=ANY_WORD).fit_transform(list(texts))
    return int((matrix @ matrix.T).toarray().round(9).sum(axis=0).argmax())


class _Sklearn:
    """The names that are used of scikit-learn."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer  # pyright: ignore[reportMissingTypeStubs]
        from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingTypeStubs]
        from sklearn.pipeline import make_pipeline  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        self.TfidfVectorizer: Any = TfidfVectorizer
        self.LogisticRegression: Any = LogisticRegression
        self.make_pipeline: Any = make_pipeline


def _sklearn() -> _Sklearn:
    try:
        return _Sklearn()
    except ImportError:
        raise MissingExtraError("a baseline that learns", "compile") from None
