"""How often does `dspy-reflex verify` err? Simulated agents, through the judgement it really makes.

    python benchmarks/verify_errors.py --out FOLDER        writes result.json, in about a minute

Each rule is looked at once, with as many outcomes after it as before. Where nothing changed, any verdict but "no evidence"
and "too few" is an error. Four worlds: failures one by one; in bursts of five on average; a rule applied right after the
second failure that was ever seen; and one right after a burst, though on the whole failures come one by one. Looking at the
same rule again each day, as long as it takes, shows what a single look does not promise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from dspy_reflex.files import write_atomic
from dspy_reflex.stages.verifying.verify import PARTS, judge
from dspy_reflex.store.recurrence import Part

RATES = (0.002, 0.01, 0.05)
OUTCOMES = (300, 1000, 5000)
MEAN_BURST = 5
TRIGGER = 2
LOOKS = 28
RULES = 2000
SEED = 0

Outcomes = NDArray[np.bool_]
World = Callable[[np.random.Generator, float, int], tuple[Outcomes, Outcomes]]


def main() -> None:
    """Simulate, write the result and print it."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rules", type=int, default=RULES, help=f"rules of each kind (default {RULES})")
    made.add_argument("--out", type=Path, default=Path("experiments/verify"))
    options = made.parse_args()
    result = {
        "benchmark": "verify_errors",
        "rules": options.rules, "seed": SEED, "mean_burst": MEAN_BURST, "looks": LOOKS,
        "nothing_changed": {name: _table(world, 1.0, options.rules) for name, world in WORLDS.items()},
        "halved": _table(one_by_one, 0.5, options.rules),
        "stopped": _table(one_by_one, 0.0, options.rules),
        "nothing_changed_looked_at_daily": _share(daily(options.rules // 4)),
    }  # fmt: skip
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result, indent=1))


def verdicts(world: World, rate: float, outcomes: int, left: float, rules: int) -> list[str]:
    """What is said of rules that leave this share of the failures."""
    rng = np.random.default_rng(SEED)
    found: list[str] = []
    for _ in range(rules):
        before, after = world(rng, rate, outcomes)
        found.append(judge(parts(before), parts(after & (rng.random(outcomes) < left)))[0])
    return found


def one_by_one(rng: np.random.Generator, rate: float, outcomes: int) -> tuple[Outcomes, Outcomes]:
    """Each outcome fails by itself."""
    return rng.random(outcomes) < rate, rng.random(outcomes) < rate


def in_bursts(rng: np.random.Generator, rate: float, outcomes: int) -> tuple[Outcomes, Outcomes]:
    """Failures follow each other; a burst's length is geometric."""
    return _bursty(rng, rate, outcomes), _bursty(rng, rate, outcomes)


def after_the_second(rng: np.random.Generator, rate: float, outcomes: int) -> tuple[Outcomes, Outcomes]:
    """The agent is new, and the rule comes with its second failure."""
    gaps = rng.geometric(rate, TRIGGER)
    before = np.zeros(int(gaps.sum()), dtype=bool)
    before[np.cumsum(gaps) - 1] = True
    return before[-outcomes:], rng.random(outcomes) < rate


def after_a_burst(rng: np.random.Generator, rate: float, outcomes: int) -> tuple[Outcomes, Outcomes]:
    """Two failures in the last twentieth of the time are what led to the rule."""
    before, after = one_by_one(rng, rate, outcomes)
    before[rng.choice(outcomes // PARTS, TRIGGER, replace=False) - outcomes // PARTS] = True
    return before, after


WORLDS: dict[str, World] = {
    "one by one": one_by_one,
    "in bursts": in_bursts,
    "rule after the second failure": after_the_second,
    "rule after two close failures": after_a_burst,
}


def daily(rules: int, rate: float = 0.01, a_day: int = 200) -> list[str]:
    """The first verdict on each rule that changed nothing, looked at every day for four weeks."""
    rng = np.random.default_rng(SEED)
    found: list[str] = []
    for _ in range(rules):
        before, after = one_by_one(rng, rate, LOOKS * a_day)
        looks = (judge(parts(before[-day * a_day :]), parts(after[: day * a_day]))[0] for day in range(1, LOOKS + 1))
        found.append(next((one for one in looks if one in ("helped", "worse")), "no evidence"))
    return found


def parts(failed: Outcomes) -> list[Part]:
    """Outcomes as the store counts them."""
    return [Part(len(some), int(some.sum())) for some in np.array_split(failed, PARTS)]


def _bursty(rng: np.random.Generator, rate: float, outcomes: int) -> Outcomes:
    failed = np.zeros(outcomes, dtype=bool)
    for start in np.flatnonzero(rng.random(outcomes) < rate / MEAN_BURST):
        failed[start : start + int(rng.geometric(1 / MEAN_BURST))] = True
    return failed


def _table(world: World, left: float, rules: int) -> dict[str, Any]:
    return {
        f"{1000 * rate:g} per 1,000, {outcomes} outcomes": _share(verdicts(world, rate, outcomes, left, rules))
        for rate in RATES
        for outcomes in OUTCOMES
    }


def _share(found: list[str]) -> dict[str, Any]:
    """Shares of each verdict; the interval is of those that say something changed."""
    said = sum(one in ("helped", "worse") for one in found)
    low, high = binomtest(said, len(found)).proportion_ci(0.95, "wilson")
    shares = {name: found.count(name) / len(found) for name in ("helped", "worse", "no evidence", "too few")}
    return {**shares, "said": said / len(found), "interval": [round(low, 4), round(high, 4)]}


if __name__ == "__main__":
    main()
