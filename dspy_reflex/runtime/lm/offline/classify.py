"""Choose one of a closed list: by the definitions, cue sheets and demos that the prompt holds.

The score of a label is a prior (likeness to its definition, plus its cues) that the demos then correct: kernel ridge
regression on what the prior gets wrong about them. Nothing is known of a label but what the prompt says of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dspy_reflex.runtime.lm.offline.cues import read_sheets, vocabulary
from dspy_reflex.runtime.lm.offline.features import Features, features_of, observed, words_of
from dspy_reflex.runtime.lm.offline.learner import Vector, gram, rarity_of, solve, unit_vector
from dspy_reflex.runtime.lm.offline.prompt import Fields, Task

DEFINITION_WEIGHT = 3.0
"""How much likeness to a definition counts against demos."""
UNSEEN = -0.5
"""Score of a label that a cue sheet does not list: nobody who wrote the sheet had seen it."""
DEMO_RIDGE = 8.0
"""How much the demos hold back, where they are all there is."""
DEFINITION_WEIGHT_WITH_CUES = 1.0
DEMO_RIDGE_WITH_CUES = 80.0
"""The same two beside a cue sheet: that was mined from many examples, of which the demos are a few."""
SHARPNESS = 3.0
"""Turns score differences into odds."""
KEPT_STEMS = 1 << 14
"""Words of which stem and meaning are known without looking: texts have most of their words in common."""
EXAMPLE = "Example: "
BOUNDARY = "Not this: "


@dataclass(frozen=True)
class Ranking:
    """Probabilities of all labels for one case, best first, and the cues that spoke for the best."""

    shares: tuple[tuple[str, float], ...]
    cues: tuple[str, ...]

    @property
    def best(self) -> str:
        """The most probable label."""
        return self.shares[0][0]


class Classifier:
    """What a prompt teaches about one closed choice. Building it costs once per prompt, asking it is cheap."""

    def __init__(self, task: Task, field: str) -> None:
        """Read definitions, cues and demos for the output field `field` out of a task."""
        self.labels = task.choices[field]
        self._sheets = [sheet for sheet in read_sheets(task.instructions) if set(sheet.weights) <= set(self.labels)]
        self._vocabularies = [vocabulary(sheet) for sheet in self._sheets]
        self._definitions = _definitions(task.instructions, self.labels)
        demos = [demo for demo in task.demos if demo.outputs.get(field) in self.labels]
        self._learn([features_of(demo.inputs) for demo in demos], [demo.outputs[field] for demo in demos])

    def rank(self, case: Fields) -> Ranking:
        """Order the labels for one case."""
        features = features_of(case)
        scores = self._prior(features)
        for label, correction in self._correction(features).items():
            scores[label] += correction
        return Ranking(_softmax(scores, self.labels), self._spoke_for(max(scores, key=scores.__getitem__), features))

    def _prior(self, features: Features) -> dict[str, float]:
        scores = dict.fromkeys(self.labels, 0.0)
        weight = DEFINITION_WEIGHT_WITH_CUES if self._sheets else DEFINITION_WEIGHT
        for label, likeness in _centred(_likeness(self._definitions, features)).items():
            scores[label] += weight * likeness
        for sheet, words in zip(self._sheets, self._vocabularies, strict=True):
            found = sheet.scores(unit_vector(features, words))
            for label in self.labels:
                scores[label] += found.get(label, UNSEEN)
        return scores

    def _learn(self, examples: Sequence[Features], answers: Sequence[str]) -> None:
        self._rarity = rarity_of(examples) if examples else {}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        self._dual: list[list[float]] = []
        if not examples:
            return
        vectors = [unit_vector(example, self._rarity) for example in examples]
        for row, vector in enumerate(vectors):
            for name, value in vector.items():
                self._postings.setdefault(name, []).append((row, value))
        priors = [self._prior(example) for example in examples]
        wrong = [
            [(1.0 if label == answer else -1.0) - prior[label] for label in self.labels]
            for answer, prior in zip(answers, priors, strict=True)
        ]
        counts = Counter(answers)
        strength = DEMO_RIDGE_WITH_CUES if self._sheets else DEMO_RIDGE
        ridge = [strength * len(counts) * counts[answer] / len(answers) for answer in answers]
        self._dual = solve(gram(vectors), ridge, wrong)

    def _correction(self, features: Features) -> dict[str, float]:
        if not self._dual:
            return {}
        near = [1.0] * len(self._dual)
        for name, value in unit_vector(features, self._rarity).items():
            for row, other in self._postings.get(name, ()):
                near[row] += value * other
        return {
            label: sum(kernel * row[i] for kernel, row in zip(near, self._dual, strict=True))
            for i, label in enumerate(self.labels)
        }

    def _spoke_for(self, label: str, features: Features) -> tuple[str, ...]:
        """The strongest cues for a label; where no sheet has any, the words shared with its definition."""
        found = {n: w for sheet in self._sheets for n, w in sheet.weights.get(label, {}).items() if n in features}
        if not any(weight > 0 for weight in found.values()):
            meant = self._definitions[label]
            found = {n: meant[_stem(n)] for n in features if _stem(n) in meant}
        return tuple(n for n in sorted(found, key=lambda name: (-found[name], name))[:6] if found[n] > 0)


def _definitions(instructions: str, labels: Sequence[str]) -> dict[str, Vector]:
    """Words of each label's definition and example, weighted by how few definitions use them."""
    words: dict[str, Counter[str]] = {label: Counter() for label in labels}
    by_length = sorted(labels, key=len, reverse=True)  # a label may begin like another one
    current = ""
    for line in instructions.splitlines():
        started = next((label for label in by_length if line.startswith(f"- {label}: ")), "")
        if started:
            current = started
            words[current].update(_stems(line.removeprefix(f"- {started}: ")))
        elif current and line.startswith(EXAMPLE):
            words[current].update(_stems(line.removeprefix(EXAMPLE)))
        elif line.strip() and not line.startswith(BOUNDARY):
            current = ""
    used = Counter(word for counts in words.values() for word in counts)
    rare = {word: math.log(len(labels) / count) for word, count in used.items()}
    return {label: unit_vector(counts, rare) for label, counts in words.items()}


def _likeness(definitions: Mapping[str, Vector], features: Features) -> dict[str, float]:
    present: dict[str, int] = {}
    for name, count in features.items():
        if " " not in name and ":" not in name:
            stem = _stem(name)
            present[stem] = present.get(stem, 0) + count
            for shown in _shown(name):
                present[shown] = present.get(shown, 0) + 1
    heard = {word: 1.0 + math.log(count) for word, count in present.items()}
    scale = math.sqrt(sum(value for value in heard.values())) or 1.0
    return {
        label: sum(weight * heard[word] for word, weight in vector.items() if word in heard) / scale
        for label, vector in definitions.items()
    }


def _centred(scores: Mapping[str, float]) -> dict[str, float]:
    mean = sum(scores.values()) / len(scores)
    return {label: score - mean for label, score in scores.items()}


def _softmax(scores: Mapping[str, float], labels: Sequence[str]) -> tuple[tuple[str, float], ...]:
    top = max(scores.values())
    odds = {label: math.exp(SHARPNESS * (scores[label] - top)) for label in labels}
    total = sum(odds.values())
    return tuple(sorted(((label, odd / total) for label, odd in odds.items()), key=lambda pair: -pair[1]))


@lru_cache(maxsize=KEPT_STEMS)
def _shown(word: str) -> tuple[str, ...]:
    """Stems of what a word shows."""
    return tuple(_stems(observed(word)))


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in words_of(text)]


@lru_cache(maxsize=KEPT_STEMS)
def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "ly", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word
