"""The arithmetic of the offline learner: sparse vectors and class-balanced ridge regression, in plain Python.

Ridge regression is solved in its dual form, so the cost depends on the number of examples and not on the number of
words (C. Saunders, A. Gammerman, V. Vovk: Ridge regression learning algorithm in dual variables, ICML 1998).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dspy_reflex.runtime.lm.offline.features import Features

Vector = dict[str, float]
MIN_EXAMPLES_PER_WORD = 2
RIDGE = 1.0
"""Strength of the pull towards zero, for vectors of length one."""


@dataclass(frozen=True)
class Linear:
    """A linear score per label."""

    weights: Mapping[str, Mapping[str, float]]
    """Label to feature to weight."""
    base: Mapping[str, float]
    """Label to the score of an empty text."""

    def scores(self, vector: Vector) -> dict[str, float]:
        """The score of each label."""
        return {
            label: self.base[label] + sum(weights[name] * value for name, value in vector.items() if name in weights)
            for label, weights in self.weights.items()
        }


def unit_vector(features: Features, rarity: Mapping[str, float]) -> Vector:
    """Length-one vector over the features that `rarity` knows: (1 + ln count) times rarity."""
    vector = {name: (1.0 + math.log(count)) * rarity[name] for name, count in features.items() if name in rarity}
    length = math.sqrt(sum(value * value for value in vector.values()))
    return {name: value / length for name, value in vector.items()} if length else {}


def rarity_of(examples: Sequence[Features]) -> dict[str, float]:
    """Smoothed inverse document frequency of every feature that occurs in at least two examples."""
    seen = Counter(name for features in examples for name in features)
    total = len(examples)
    least = min(MIN_EXAMPLES_PER_WORD, max(1, total // 4))
    return {name: math.log((1 + total) / (1 + n)) + 1.0 for name, n in seen.items() if n >= least}


def fit(vectors: Sequence[Vector], labels: Sequence[str], classes: Sequence[str]) -> Linear:
    """Class-balanced ridge regression of +1 (this label) against -1 (another) for each class."""
    counts = Counter(labels)
    present = [name for name in classes if name in counts]
    targets = [[1.0 if label == name else -1.0 for name in present] for label in labels]
    ridge = [RIDGE * len(present) * counts[label] / len(labels) for label in labels]
    dual = solve(gram(vectors), ridge, targets)
    return _primal(vectors, dual, present)


def gram(vectors: Sequence[Vector]) -> list[list[float]]:
    """Inner products of all pairs, plus one (the constant feature)."""
    size = len(vectors)
    products = [[1.0] * size for _ in range(size)]
    postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row, vector in enumerate(vectors):
        for name, value in vector.items():
            postings[name].append((row, value))
    for entries in postings.values():
        for row, value in entries:
            target = products[row]
            for column, other in entries:
                target[column] += value * other
    return products


def solve(products: list[list[float]], ridge: Sequence[float], targets: list[list[float]]) -> list[list[float]]:
    """Solve (products + diag(ridge)) x = targets by Cholesky factorisation; one column of x per class."""
    lower = _cholesky(products, ridge)
    size, width = len(lower), len(targets[0])
    x = [list(row) for row in targets]
    for i in range(size):
        for column in range(width):
            done = sum(lower[i][k] * x[k][column] for k in range(i))
            x[i][column] = (x[i][column] - done) / lower[i][i]
    for i in reversed(range(size)):
        for column in range(width):
            done = sum(lower[k][i] * x[k][column] for k in range(i + 1, size))
            x[i][column] = (x[i][column] - done) / lower[i][i]
    return x


def _cholesky(products: list[list[float]], ridge: Sequence[float]) -> list[list[float]]:
    size = len(products)
    lower: list[list[float]] = []
    for i in range(size):
        row: list[float] = []
        for j in range(i):
            other = lower[j]
            done = sum(a * b for a, b in zip(row, other, strict=False))
            row.append((products[i][j] - done) / other[j])
        row.append(math.sqrt(products[i][i] + ridge[i] - sum(a * a for a in row)))
        lower.append(row)
    return lower


def _primal(vectors: Sequence[Vector], dual: list[list[float]], classes: Sequence[str]) -> Linear:
    weights: dict[str, dict[str, float]] = {name: defaultdict(float) for name in classes}
    for vector, row in zip(vectors, dual, strict=True):
        for name, factor in zip(classes, row, strict=True):
            target = weights[name]
            for feature, value in vector.items():
                target[feature] += factor * value
    base = {name: sum(row[i] for row in dual) for i, name in enumerate(classes)}
    return Linear({name: dict(found) for name, found in weights.items()}, base)
