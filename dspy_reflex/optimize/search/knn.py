"""A program that is shown, with each input, the labelled examples most like it. Compiling it asks no model anything.

DSPy's `KNNFewShot` works its demos out anew for every input, at several calls each, and its state holds none of them.
Here the examples are shown as they are labelled, and `publish` puts them, with an index, into the artefact. `dspy.KNN`
itself is not used: it orders equally near examples as NumPy's unstable sort happens to, and it shows a program that is
asked about a row of its trainset that row's answer. The look-up is the light runtime's own, so both wings find the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_origin

import dspy

from dspy_reflex.errors import CompileError, ProgramError
from dspy_reflex.optimize.modules import only_predictor
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.retrieve import Index, said

SCALE = 100
"""Weights are kept in hundredths, as whole numbers; less than half of one is none."""
LEAST_EXAMPLES = 2
"""Examples that a word must stand in: one that stands in a single example makes it like no other input we know of."""
UNTOLD = 0.05
"""What a word counts for that tells nothing about the label, in nats."""
CAUTION = 3.0
"""Examples of the usual labels that are thought beside those a word was seen in, so that two say little."""


class NearestDemos(dspy.Module):
    """A program of one predictor whose demos are, for each input, the examples most like it."""

    def __init__(self, student: Any, trainset: Sequence[Any], k: int) -> None:
        """Take over a module's instructions, and examples with the module's input fields; its own demos are dropped.

        Raises:
            CompileError: There are no examples, or an input of one is not text.
            ProgramError: The module has more than one predictor.
        """
        super().__init__()
        if not trainset:
            raise CompileError("a program that retrieves examples needs some; the trainset is empty")
        self.program, self.taxonomy = getattr(student, "program", None), getattr(student, "taxonomy", None)
        self.predict = only_predictor(student.reset_copy())
        self.examples = list(trainset)
        self.k = k
        signature = self.predict.signature
        inputs = [{name: one[name] for name in signature.input_fields if name in one} for one in self.examples]
        if any(not isinstance(text, str) for values in inputs for text in values.values()):
            raise CompileError("examples are retrieved by their texts, and an input field of one is not text")
        self.index = index_of(inputs, [one.get(_choice(signature)) for one in self.examples])

    def demos_for(self, values: Mapping[str, Any]) -> list[Any]:
        """The examples shown with an input, the most like it first; never one with the very same input."""
        asked = {name: values[name] for name in self.predict.signature.input_fields if name in values}
        return [self.examples[number] for number in self.index.nearest(asked, self.k)]

    def forward(self, **inputs: str) -> Any:
        """Ask the model once."""
        return self.predict(demos=self.demos_for(inputs), **inputs)

    async def aforward(self, **inputs: str) -> Any:
        """The same, without blocking the event loop."""
        return await self.predict.acall(demos=self.demos_for(inputs), **inputs)

    def dump_state(self, *args: Any, **options: Any) -> Any:
        """Refuse: a state loaded into another module would answer without examples, and nobody would notice.

        Raises:
            ProgramError: Always.
        """
        raise ProgramError("a state of DSPy's cannot hold examples to retrieve; save the artefact that publish() makes")


def compile_knn(student: Any, trainset: Sequence[Any], k: int) -> NearestDemos:
    """Make a module that is shown the `k` examples most like its input; no model is asked.

    Raises:
        CompileError: There are no examples.
        ProgramError: The module has more than one predictor.
    """
    return NearestDemos(student, trainset, k)


def retrieved(artifact: Artifact, inputs: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """The examples that a program shows with each of these inputs, one after another; none if it retrieves none."""
    if not artifact.retrieval:
        return []
    index, k, known = artifact.retrieval.index, artifact.retrieval.k, artifact.data["retrieval"]["examples"]
    return [known[number] for values in inputs for number in index.nearest(dict(values), k)]


def index_of(inputs: Sequence[Mapping[str, str]], labels: Sequence[Any]) -> Index:
    """An index of examples by their inputs: vectors of length one, in which a word counts for what `worth` says.

    The input's own weights are multiplied in, so that at render time only its words have to be counted: what is summed
    up there is the cosine of both vectors, times `SCALE` and the length of the input's, which is the same for all.
    """
    counts = [said(values) for values in inputs]
    weights = worth(counts, labels)
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, words in enumerate(counts):
        vector = {word: n.bit_length() * weights[word] for word, n in words.items() if word in weights}
        length = math.sqrt(sum(value * value for value in vector.values()))
        for word, value in vector.items():
            if weight := round(SCALE * value * weights[word] / length):
                postings.setdefault(word, []).append((number, weight))
    return Index(tuple(map(dict, inputs)), {word: tuple(postings[word]) for word in sorted(postings)})


def worth(counts: Sequence[Mapping[str, int]], labels: Sequence[Any]) -> dict[str, float]:
    """What a word counts for: its rarity, times what it tells about the label of the example it stands in.

    Supervised term weighting (F. Debole, F. Sebastiani: Supervised term weighting for automated text categorization,
    SAC 2003). What it tells is the Kullback-Leibler divergence, in nats, of the labels where it stands from all labels.
    """
    total, usual = len(counts), Counter(labels)
    seen: dict[str, Counter[Any]] = {}
    for words, label in zip(counts, labels, strict=True):
        for word in words:
            seen.setdefault(word, Counter())[label] += 1
    least = min(LEAST_EXAMPLES, max(1, total // 4))
    sizes = {word: found.total() for word, found in seen.items()}
    return {
        word: math.log(total / size) * (_told(seen[word], usual) + UNTOLD)
        for word, size in sizes.items()
        if least <= size < total
    }


def _told(found: Mapping[Any, int], usual: Counter[Any]) -> float:
    """How far some examples' labels are from the usual ones, `CAUTION` of which are thought beside them; in nats."""
    total, size = usual.total(), sum(found.values())
    told = 0.0
    for label, n in usual.items():
        share = (found.get(label, 0) + CAUTION * n / total) / (size + CAUTION)
        told += share * math.log(share * total / n)
    return told


def _choice(signature: Any) -> str:
    """The output field with a closed list of answers; empty if there is none."""
    kinds = {name: get_origin(info.annotation) for name, info in signature.output_fields.items()}
    return next((name for name, kind in kinds.items() if kind is Literal), "")
