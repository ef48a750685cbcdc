"""Which of a program's examples are nearest to an input, found at render time from an index that the artefact carries.

The index says, for each word and each pair of words, which examples it stands in and how much it counts there. It was
weighed when the program was compiled (`optimize.search.knn`); here whole numbers are added up, so the order is the same on every
machine and in both wings. Examples that are equally near keep their order. Nothing here changes after it was read, so
threads share it. Standard library only.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

VECTORIZER = "words-and-pairs/1"
"""Name and version of what is counted of a text: the number rises when `said` would count anything else."""

WORD = re.compile(r"[^\W_]+")

Postings = Mapping[str, tuple[tuple[int, int], ...]]
"""Word or pair of words to the numbers of the examples it stands in, each with its weight there."""


def said(values: Mapping[str, str]) -> Counter[str]:
    """How often each word, and each pair of words in a row, stands in the fields of an input; case does not count."""
    found: Counter[str] = Counter()
    for text in values.values():
        words = WORD.findall(text.lower())
        found.update(words)
        found.update(map(" ".join, pairwise(words)))
    return found


@dataclass(frozen=True)
class Index:
    """Examples that can be looked up by likeness."""

    inputs: tuple[Mapping[str, str], ...]
    """The input fields of each example."""
    postings: Postings

    def nearest(self, values: Mapping[str, str], k: int) -> list[int]:
        """Numbers of the `k` examples most like an input, the most like first.

        The likeness is the sum over what both say of its weight in the example times 1 + floor(log2 n), n being how
        often the input says it. An example with the very same input is left out: a program that is asked about a row
        it learnt from must not be shown that row's answer.
        """
        likeness = [0] * len(self.inputs)
        for word, count in said(values).items():
            times = count.bit_length()
            for number, weight in self.postings.get(word, ()):
                likeness[number] += weight * times
        others = (number for number, inputs in enumerate(self.inputs) if inputs != values)
        return heapq.nsmallest(k, others, key=lambda number: -likeness[number])


@dataclass(frozen=True)
class Retrieval:
    """What an artefact says of the examples that it shows with an input."""

    k: int
    """How many are shown with one input."""
    lead: str
    """What stands above the fields of each."""
    answers: tuple[str, ...]
    """The answer shown with each example, rendered."""
    index: Index

    @classmethod
    def from_json(cls, data: Mapping[str, Any], inputs: tuple[str, ...]) -> Retrieval:
        """Read the `retrieval` of an artefact with these input fields.

        Raises:
            KeyError: Something is missing.
            TypeError: Something is of another type.
            ValueError: Something is out of range.
        """
        examples, k = data["examples"], data["k"]
        if type(k) is not int or k < 1:
            raise ValueError(f"a program retrieves one example or more, not {k!r}")
        asked = tuple(
            {name: _text(one["values"][name]) for name in inputs if name in one["values"]} for one in examples
        )
        postings = {word: _read(_text(items), len(asked)) for word, items in data["index"].items()}
        return cls(k, _text(data["lead"]), tuple(_text(one["answer"]) for one in examples), Index(asked, postings))


def written(postings: Postings) -> dict[str, str]:
    """Postings as an artefact carries them: a text a word, `example:weight` with blanks between."""
    return {word: " ".join(f"{number}:{weight}" for number, weight in items) for word, items in postings.items()}


def _read(items: str, size: int) -> tuple[tuple[int, int], ...]:
    pairs = (item.split(":") for item in items.split())
    read = tuple((int(number), int(weight)) for number, weight in pairs)
    if not all(0 <= number < size for number, _ in read):
        raise ValueError(f"an index of {size} examples names another one")
    return read


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
