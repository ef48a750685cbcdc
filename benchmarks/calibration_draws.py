"""Which calibration and which threshold can be trusted, learnt from 72 rows? And from more?

    python benchmarks/calibration_draws.py

The recipe of the current root-cause program (its guide, a cue sheet, some demos) is followed on four fifths of train and
val and asked about the other fifth, so that each of 720 failures has an answer that was made without it, from each of
twelve candidates. Then, again and again: some units (24, as many as val has, or more) are drawn to choose the best
candidate and to calibrate it on, and 60 others to see what came of it. The test splits are never read.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from sklearn.isotonic import IsotonicRegression

from dspy_reflex.benchmark.confidence import auroc, ece_by_chance
from dspy_reflex.benchmark.statistics import brier, ece
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.split import folds
from dspy_reflex.optimize.calibrate import fit, threshold_for
from dspy_reflex.runtime.library import find
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.runtime.lm.offline.classify import Classifier
from dspy_reflex.runtime.lm.offline.cues import SMALLEST_WEIGHTS, mine, without_sheets, write_sheet
from dspy_reflex.runtime.lm.offline.features import features_of
from dspy_reflex.runtime.lm.offline.prompt import Demo, Task, read_task
from dspy_reflex.taxonomies.load import load_taxonomy

FOLDS = 5
DEMO_SETS = (4, 6, 8, 10, 12, 16)
"""Demos in each of a sheet's candidates."""
DRAWS = 300
FIT_UNITS = (24, 60, 180)
"""As many as val has, and more; a unit is three rows."""
JUDGE_UNITS = 60
"""As many as test has."""
TARGETS = (0.8, 0.9)

Curve = Callable[[float], float]


@dataclass(frozen=True)
class Answer:
    """One candidate's answer to a failure that it had not seen."""

    confidence: float
    right: bool


Answers = dict[str, list[list[Answer]]]
"""By unit; a list of rows, each with the answers of all candidates."""


def main() -> None:
    """Draw, and print what came of it as JSON."""
    evalset = load_evalset(Path("datasets/failures"), load_taxonomy())
    answers = out_of_fold([*evalset.split("train"), *evalset.split("val")])
    flat = [one for rows in answers.values() for row in rows for one in row]
    result = {
        "benchmark": "calibration_draws",
        "answers": len(flat),
        "right": fmean(one.right for one in flat),
        "auroc": auroc([one.confidence for one in flat], [one.right for one in flat]),
        "fitted_on_units": {str(units): drawn(answers, units) for units in FIT_UNITS},
    }
    print(json.dumps(result, indent=1))


def drawn(answers: Answers, fit_units: int) -> dict[str, dict[str, dict[str, float]]]:
    """What curves and thresholds are worth, on average, that were fitted on so many units."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    asked: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    rng = random.Random(0)
    for _ in range(DRAWS):
        units = rng.sample(sorted(answers), fit_units + JUDGE_UNITS)
        known, judged = _best(answers, units[:fit_units], units[fit_units:])
        for name, curve in _curves(known).items():
            _score(scores[name], curve, judged)
        for name, cut in _cuts(known).items():
            above = [one.right for one in judged if one.confidence >= cut]
            asked[name].append((len(above), sum(above), len(judged)))
    return {
        "curves": {name: {what: fmean(values) for what, values in found.items()} for name, found in scores.items()},
        "thresholds": {name: _summary(found) for name, found in asked.items()},
    }


def out_of_fold(rows: Sequence[LabelledFailure]) -> Answers:
    """The answers of every candidate to every row, made without the row's fold."""
    model = connect("offline")
    artifact = find("root_cause", model.name)
    task = read_task([*artifact.data["messages"], {"role": "user", "content": ""}])
    guide = without_sheets(task.instructions)
    answers: Answers = defaultdict(list)
    for fold, (train, held_out) in enumerate(folds(rows, FOLDS)):
        labels = [str(row.root_cause) for row in train]
        features, classes = [features_of(row.inputs) for row in train], sorted(set(labels))
        sheets = [write_sheet(mine(features, labels, classes, smallest)) for smallest in SMALLEST_WEIGHTS]
        asked = [_candidate(task, f"{guide}\n\n{sheet}", train, fold, n) for sheet in sheets for n in DEMO_SETS]
        for row in held_out:
            answers[row.unit].append([_answer(one, row) for one in asked])
    return answers


def _candidate(task: Task, instructions: str, train: Sequence[LabelledFailure], seed: int, demos: int) -> Classifier:
    shown = random.Random(100 * seed + demos).sample(list(train), demos)
    worked = tuple(Demo(row.inputs, {"root_cause": str(row.root_cause)}) for row in shown)
    return Classifier(Task(instructions, task.outputs, task.choices, worked, False), "root_cause")


def _answer(candidate: Classifier, row: LabelledFailure) -> Answer:
    label, share = candidate.rank(row.inputs).shares[0]
    return Answer(round(share, 3), label == row.root_cause)


def _best(answers: Answers, fit_on: Sequence[str], judge_on: Sequence[str]) -> tuple[list[Answer], list[Answer]]:
    """Answers of the candidate that is best on the units to fit on, to those and to the others."""
    known, judged = ([row for unit in units for row in answers[unit]] for units in (fit_on, judge_on))
    best = max(range(len(known[0])), key=lambda place: sum(row[place].right for row in known))
    return [row[best] for row in known], [row[best] for row in judged]


def _curves(known: Sequence[Answer]) -> dict[str, Curve]:
    sure, hits = [one.confidence for one in known], [one.right for one in known]
    fitted, isotonic = fit(sure, hits), IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(sure, hits)
    if fitted is None:
        raise SystemExit("all or none of the drawn answers are right")
    return {
        "stated": lambda stated: stated,
        "logistic": fitted.of,
        "isotonic": lambda stated: float(isotonic.predict([stated])[0]),
    }


def _score(scores: dict[str, list[float]], curve: Curve, judged: Sequence[Answer]) -> None:
    sure, hits = [curve(one.confidence) for one in judged], [one.right for one in judged]
    found = {"ece": ece(sure, hits), "brier": brier(sure, hits), "too_sure_by": fmean(sure) - fmean(hits)}
    for name, value in {**found, "within_chance": float(found["ece"] <= ece_by_chance(sure))}.items():
        scores[name].append(value)


def _cuts(known: Sequence[Answer]) -> dict[str, float]:
    """Thresholds on the stated confidence; infinity where everything is asked about."""
    sure, hits = [one.confidence for one in known], [one.right for one in known]
    fitted = fit(sure, hits)
    if fitted is None:
        raise SystemExit("all or none of the drawn answers are right")
    cuts = {"youden": _by_youden(known)}
    for target in TARGETS:
        expected = threshold_for(fitted, sure, target)
        reaching = [one for one in sure if expected is not None and fitted.of(one) >= expected]
        cuts[f"expected {target}"] = min(reaching, default=float("inf"))
        cuts[f"counted {target}"] = _by_count(known, target)
    return cuts


def _by_count(known: Sequence[Answer], target: float) -> float:
    cuts = sorted({one.confidence for one in known})
    counted = (cut for cut in cuts if fmean(one.right for one in known if one.confidence >= cut) >= target)
    return next(counted, float("inf"))


def _by_youden(known: Sequence[Answer]) -> float:
    def index(cut: float) -> float:
        share = {right: fmean(one.confidence >= cut for one in known if one.right is right) for right in (True, False)}
        return share[True] - share[False]

    return max(sorted({one.confidence for one in known if one.right}), key=index)


def _summary(found: Sequence[tuple[int, int, int]]) -> dict[str, float]:
    unasked, right, total = (np.array(column) for column in zip(*found, strict=True))
    return {
        "asked": 1 - float(unasked.sum() / total.sum()),
        "right_unasked": float(right.sum() / unasked.sum()),
        "asks_about_all": float(np.mean(unasked == 0)),
    }


if __name__ == "__main__":
    main()
