"""scikit-learn behind three small functions: the only place of the benchmark that sees its untyped objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.difficulty import tfidf_pipeline

Classify = Callable[[str], tuple[str, float]]
"""A text to a label and its probability."""
ANY_WORD = r"\w+|[^\w\s]"
"""A word of any length, or a sign: short texts have no token to spare."""


def tfidf_logistic_regression(texts: Sequence[str], labels: Sequence[str]) -> Classify:
    """Fit the pipeline of `evalset.difficulty`, the one that the eval set's difficulty is judged by.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    model = tfidf_pipeline()
    if len(set(labels)) == 1:  # nothing to learn, and scikit-learn refuses
        return lambda _: (labels[0], 1.0)
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
    vectorizer = _vectorizer()(sublinear_tf=True, token_pattern=ANY_WORD)
    matrix = vectorizer.fit_transform(list(texts))
    # Rows have length one, so the dot product is the cosine.
    return lambda text: int((matrix @ vectorizer.transform([text]).T).toarray().ravel().argmax())


def medoid(texts: Sequence[str]) -> int:
    """The index of the text that is nearest to all the others, the first of equals.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    matrix = _vectorizer()(token_pattern=ANY_WORD).fit_transform(list(texts))
    return int((matrix @ matrix.T).toarray().round(9).sum(axis=0).argmax())


def _vectorizer() -> Any:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtraError("a baseline that learns", "compile") from None
    return TfidfVectorizer
