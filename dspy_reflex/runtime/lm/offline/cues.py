"""Cue sheets: what labelled examples taught, as lines that people and the offline learner can both read.

A sheet is a heading and one line per label::

    Cues from labelled examples (+ speaks for the answer, - against it):
    - tool_failure [-0.1]: timeout +0.6; actual_outcome:503 +0.4; <an error came back> +0.3; verified -0.2

The number in brackets is the score of a text with no cue in it. A text's score is that number plus the weighted sum of
its cues, each counted as 1 + ln(times seen), over the length of the vector of all cues seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from dspy_reflex.runtime.lm.offline.features import Features
from dspy_reflex.runtime.lm.offline.learner import Linear, fit, rarity_of, unit_vector

HEADING = "Cues from labelled examples (+ speaks for the answer, - against it):"
LINE = re.compile(r"^- (.+?) \[([+-]?\d+\.\d+)\]:\s*(.*)$")
CANDIDATES_PER_LABEL = 600
"""Features with the largest weights that the second fit may use."""
SMALLEST_WEIGHTS = (0.1, 0.05)
"""The smallest weight listed, of a shorter and a longer sheet."""


def mine(examples: Sequence[Features], labels: Sequence[str], classes: Sequence[str], smallest: float) -> Linear:
    """Find the cues that tell the classes apart, as weights on plain counts.

    Two fits: one over everything noticed, to choose candidates, and one over the candidates. The second sees each
    feature scaled by its rarity; the scale is then multiplied into the weight, so that a reader needs no rarity.
    """
    rarity = rarity_of(examples)
    first = fit([unit_vector(example, rarity) for example in examples], labels, classes)
    kept = {name for weights in first.weights.values() for name in _largest(weights, CANDIDATES_PER_LABEL)}
    plain = dict.fromkeys(kept, 1.0)
    vectors = [{n: v * rarity[n] for n, v in unit_vector(example, plain).items()} for example in examples]
    scale = _mean_length(vectors)
    second = fit([{n: v / scale for n, v in vector.items()} for vector in vectors], labels, classes)
    weights = {
        label: {n: round(w * rarity[n] / scale, 1) for n, w in found.items() if abs(w) * rarity[n] / scale >= smallest}
        for label, found in second.weights.items()
    }
    return Linear(weights, {label: round(base, 2) for label, base in second.base.items()})


def write_sheet(cues: Linear) -> str:
    """The sheet as text, strongest cues first."""
    lines = [HEADING]
    for label, weights in cues.weights.items():
        items = sorted(weights.items(), key=lambda item: (-abs(item[1]), item[0]))
        listed = "; ".join(f"{name} {weight:+.1f}" for name, weight in items)
        lines.append(f"- {label} [{cues.base[label]:+.2f}]: {listed}")
    return "\n".join(lines)


def read_sheets(text: str) -> list[Linear]:
    """All sheets in a text, in order."""
    sheets: list[Linear] = []
    lines: list[str] | None = None
    for line in [*map(str.strip, text.splitlines()), ""]:
        if lines is not None and LINE.match(line):
            lines.append(line)
            continue
        if lines is not None:
            sheets.append(_read(lines))
        lines = [] if line == HEADING else None
    return [sheet for sheet in sheets if sheet.weights]


def without_sheets(text: str) -> str:
    """The text with every sheet taken out."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        inside = line.strip() == HEADING or (inside and LINE.match(line.strip()) is not None)
        if not inside:
            kept.append(line)
    return "\n".join(kept).strip()


def _read(lines: Sequence[str]) -> Linear:
    weights: dict[str, dict[str, float]] = {}
    base: dict[str, float] = {}
    for line in lines:
        match = LINE.match(line)
        if match:
            label = match.group(1)
            base[label] = float(match.group(2))
            weights[label] = dict(_items(match.group(3)))
    return Linear(weights, base)


def _items(text: str) -> list[tuple[str, float]]:
    pairs = (item.rpartition(" ") for item in text.split("; ") if item)
    return [(name, float(weight)) for name, _, weight in pairs if name and re.fullmatch(r"[+-]\d+\.\d", weight)]


def _largest(weights: Mapping[str, float], count: int) -> list[str]:
    return sorted(weights, key=lambda name: (-abs(weights[name]), name))[:count]


def _mean_length(vectors: Sequence[dict[str, float]]) -> float:
    lengths = [sum(v * v for v in vector.values()) ** 0.5 for vector in vectors]
    return sum(lengths) / len(lengths) or 1.0


def vocabulary(cues: Linear) -> dict[str, float]:
    """Every feature that a sheet names, at equal rarity."""
    return dict.fromkeys(Counter(name for weights in cues.weights.values() for name in weights), 1.0)
