"""Write a rule for a case: find the rules that answered like cases, and take the one that most of them agree with.

Choosing the candidate with the highest expected agreement with the others, weighted by how near their examples are, is
minimum Bayes risk decoding (S. Kumar, W. Byrne: Minimum Bayes-risk decoding for statistical machine translation,
NAACL 2004) with word overlap as the gain.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set

from dspy_reflex.runtime.lm.offline.features import Features, features_of, words_of
from dspy_reflex.runtime.lm.offline.learner import rarity_of, unit_vector
from dspy_reflex.runtime.lm.offline.prompt import Fields, Task
from dspy_reflex.runtime.lm.offline.rulebook import Entry, read_book

REMEDY = "Usual remedy: "
KEY_CHARS = 80
"""An input no longer than this may be the name of a cause."""
NEARNESS = 14.0
"""How much more a rule counts whose example is near."""
MENTIONS = 1.2
"""How much more a rule counts that speaks of what the case shows."""
SAME_RULE = 0.8
"""Word overlap from which two rules say the same."""
ALREADY_SAID = 0.7
"""Share of a remedy's words in a rule from which it need not be added."""
MAX_CHARS = 300
"""What a rule may be long in all; a remedy is added only where it fits."""


class RuleWriter:
    """What a prompt teaches about writing rules."""

    def __init__(self, task: Task, field: str, place: str) -> None:
        """Read rules out of the demos and rule books of a task; `field` is the rule, `place` the closed choice."""
        self._places = task.choices.get(place, ())
        self._lines = task.instructions.splitlines()
        self._entries = list(read_book(task.instructions))
        examples: list[Features] = [Counter(entry.words) for entry in self._entries]
        for demo in task.demos:
            if rule := demo.outputs.get(field):
                self._entries.append(Entry(self._key(demo.inputs), demo.outputs.get(place, ""), (), rule))
                examples.append(features_of(demo.inputs))
        self._rarity = rarity_of(examples) if examples else {}
        self._vectors = [unit_vector(example, self._rarity) for example in examples]
        rare = _rareness([entry.rule for entry in self._entries])
        self._says = [{word: rare[word] for word in words_of(entry.rule)} for entry in self._entries]
        self._written = [_with_remedy(entry.rule, self._remedy(entry.key)) for entry in self._entries]
        self._words = [list(dict.fromkeys(words_of(rule))) for rule in self._written]  # in order: sums must not vary

    def write(self, case: Fields) -> tuple[str, str, str]:
        """Rule, place and rationale for one case."""
        near = self._near(case)
        if not near:
            return (
                _from_remedy(self._remedy(self._key(case))),
                self._places[0] if self._places else "",
                "The usual remedy; no example was near.",
            )
        there = [set(words_of(line)) for line in case.get("existing_rules", "").splitlines()]
        fresh = [place for place, _ in near if not _among(self._says[place].keys(), there)] or [near[0][0]]
        said = _said(near, self._says)
        best = max(fresh, key=lambda place: (sum(said[word] for word in self._words[place]), self._written[place]))
        votes: dict[str, float] = {}
        for place, weight in near:
            name = self._entries[place].place
            votes[name] = votes.get(name, 0.0) + weight
        file = max(votes, key=lambda name: (votes[name], name))
        why = f"{len(near)} labelled failures with this cause were answered by rules of this kind."
        return self._written[best], file, why

    def _key(self, inputs: Fields) -> str:
        """What a rule has to be for: the input that the instruction has a definition of."""
        short = (text for text in inputs.values() if text and len(text) <= KEY_CHARS and "\n" not in text)
        return next((text for text in short if self._place(text) is not None), "")

    def _place(self, key: str) -> int | None:
        """The line of a cause's definition."""
        start = f"- {key}: "
        return next((i for i, line in enumerate(self._lines) if line.startswith(start)), None)

    def _remedy(self, key: str) -> str:
        """The usual remedy under a cause's definition; empty if there is none."""
        place = self._place(key)
        following = self._lines[place + 1 : place + 2] if place is not None else []
        return next((line.removeprefix(REMEDY) for line in following if line.startswith(REMEDY)), "")

    def _near(self, case: Fields) -> list[tuple[int, float]]:
        """Places of the rules that are for the case's key, with their weights, nearest first."""
        key, features = self._key(case), features_of(case)
        vector = unit_vector(features, self._rarity)
        near = [
            (place, math.exp(NEARNESS * _cosine(vector, other) + MENTIONS * _mentioned(says, features)))
            for place, (entry, other, says) in enumerate(zip(self._entries, self._vectors, self._says, strict=True))
            if entry.key == key
        ]
        return sorted(near, key=lambda pair: (-pair[1], self._entries[pair[0]].rule))


def _from_remedy(remedy: str) -> str:
    first = remedy or "stop and check the step against its source at most twice, then report what is open"
    rule = "When a step of this kind comes up"
    for part, joint in zip(first.split("; "), (", ", *["; "] * len(first)), strict=False):
        if len(rule) + len(joint) + len(part) < MAX_CHARS:
            rule += joint + part
    return f"{rule}."


def _with_remedy(rule: str, remedy: str) -> str:
    """The rule, and of the remedy the parts that it does not say already and that fit behind it."""
    whole = rule.rstrip(". ")
    for part in remedy.split("; "):
        words = set(words_of(part))
        said = len(words & set(words_of(rule))) >= ALREADY_SAID * len(words)
        if words and not said and len(whole) + len(part) + 3 <= MAX_CHARS:
            whole += f"; {part}"
    return f"{whole}."


def _said(near: Sequence[tuple[int, float]], says: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """How much of what the near rules say each word is: the gain of a rule is the sum over the words it is written with.

    Of each rule a word is its share of the rule's rare words; rare words count more, near rules count more.
    """
    said: dict[str, float] = defaultdict(float)
    for place, weight in near:
        whole = sum(says[place].values())
        for word, rare in says[place].items() if whole else ():
            said[word] += weight * rare / whole
    return said


def _mentioned(says: Mapping[str, float], features: Features) -> float:
    """How much of a rule's wording the case uses itself, over the length of the rule."""
    length = math.sqrt(sum(rare**2 for rare in says.values()))
    return sum(rare for word, rare in says.items() if word in features) / length if length else 0.0


def _rareness(rules: Sequence[str]) -> dict[str, float]:
    used = Counter(word for rule in rules for word in set(words_of(rule)))
    return {word: math.log(len(rules) / count) for word, count in used.items()}


def _among(words: Set[str], rules: Sequence[set[str]]) -> bool:
    return any(_overlap(words, other) >= SAME_RULE for other in rules)


def _overlap(a: Set[str], b: set[str]) -> float:
    return 2 * len(a & b) / (len(a) + len(b)) if a and b else 0.0


def _cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return sum(value * b[name] for name, value in a.items() if name in b)
