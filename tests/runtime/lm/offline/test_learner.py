"""The arithmetic, against numpy."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.lm.offline.learner import fit, gram, rarity_of, solve, unit_vector

values = st.floats(-1, 1, allow_subnormal=False)
vectors = st.lists(st.dictionaries(st.sampled_from("abcdef"), values, max_size=5), min_size=1, max_size=8)


def dense(rows: list[dict[str, float]]) -> Any:
    """The same vectors as a matrix, the constant feature last."""
    return np.array([[row.get(name, 0.0) for name in "abcdef"] + [1.0] for row in rows])


@given(vectors)
def test_gram_holds_all_inner_products_and_the_constant(rows: list[dict[str, float]]) -> None:
    matrix = dense(rows)
    assert np.allclose(gram(rows), matrix @ matrix.T)


@given(vectors, st.data())
def test_solve_solves(rows: list[dict[str, float]], data: st.DataObject) -> None:
    ridge = data.draw(st.lists(st.floats(0.1, 5), min_size=len(rows), max_size=len(rows)))
    targets = data.draw(st.lists(st.tuples(values, values).map(list), min_size=len(rows), max_size=len(rows)))
    products = gram(rows)
    found = solve(products, ridge, targets)
    assert np.allclose(found, np.linalg.solve(np.array(products) + np.diag(ridge), np.array(targets)), atol=1e-6)


def test_fit_is_ridge_regression_in_which_every_class_weighs_the_same() -> None:
    rows = [{"a": 1.0}, {"a": 0.6, "b": 0.8}, {"a": 0.8, "c": 0.6}, {"b": 1.0}]
    labels = ["x", "x", "x", "y"]
    linear = fit(rows, labels, ["x", "y", "unseen"])
    matrix, targets = dense(rows), np.array([[1, -1]] * 3 + [[-1, 1]])
    weight = np.diag([4 / (2 * labels.count(label)) for label in labels])
    primal = np.linalg.solve(matrix.T @ weight @ matrix + np.eye(7), matrix.T @ weight @ targets)
    found = [[linear.weights[label].get(name, 0.0) for name in "abcdef"] + [linear.base[label]] for label in "xy"]
    assert np.allclose(np.array(found).T, primal)
    assert set(linear.weights) == {"x", "y"}


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 9)), st.dictionaries(st.text(max_size=3), st.floats(0.5, 3)))
def test_a_vector_has_length_one_or_is_empty(counts: dict[str, int], rarity: dict[str, float]) -> None:
    vector = unit_vector(Counter(counts), rarity)
    assert set(vector) == counts.keys() & rarity.keys()
    assert not vector or math.isclose(sum(value * value for value in vector.values()), 1.0)


def test_a_word_weighs_more_the_fewer_examples_use_it_and_one_example_is_none() -> None:
    rarity = rarity_of([Counter("ab"), Counter("ab"), Counter("abc"), Counter("a"), *[Counter("a")] * 4])
    assert rarity["a"] < rarity["b"]
    assert "c" not in rarity


def test_among_very_few_examples_every_word_counts() -> None:
    assert set(rarity_of([Counter("ab"), Counter("c")])) == set("abc")


@pytest.mark.parametrize("missing", ["a", "z"])
def test_a_score_counts_only_what_it_knows(missing: str) -> None:
    linear = fit([{"a": 1.0}, {"b": 1.0}], ["x", "y"], ["x", "y"])
    assert linear.scores({"zzz": 5.0}) == linear.base
    assert linear.scores({"a": 1.0})["x"] > linear.scores({missing + "z": 1.0})["x"]
