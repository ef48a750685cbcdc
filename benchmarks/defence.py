"""What the defence by construction catches, lets through and gets wrong: redaction, lint, and injected diagnoses.

Run as `python -m benchmarks.defence`: it reads the corpora of the tests.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from dspy_reflex.benchmark.statistics import mean_interval
from dspy_reflex.evalset.checks.private import second_opinion
from dspy_reflex.redaction.redact import redact, redact_value
from dspy_reflex.redaction.scan import clears
from dspy_reflex.rule_lint.lint import FORM, lint
from dspy_reflex.runtime.program import CauseProgram, load_program
from dspy_reflex.untrusted import as_text
from tests.corpora.injections import INJECTIONS, WELL_FORMED, Injection
from tests.corpora.secrets import BEYOND_SHAPES, LOOK_ALIKES, SECRETS
from tests.redaction.events import EVENT

FAILURES = Path(__file__).parents[1] / "datasets" / "failures"
FIELDS = ("id", "agent_id", "task", "expected_outcome", "actual_outcome", "severity", "context")
PLACES = ("task", "actual_outcome", "context")
LONGEST = 100_000
"""Longer injections are cut by the prompt like any text; they would only cost time here."""
FILLERS = {
    "latin": (
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
        "magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea. "
    ),
    "english": "The nightly report was sent to the team and the numbers of the week were added to the sheet. ",
}
"""Neutral texts: words that the program has never seen, and words that it has."""


def redaction() -> dict[str, Any]:
    """Recall on planted secrets, redactions of look-alikes and of ordinary failures, and the second opinion."""
    scan = second_opinion()
    rows = [row for split in sorted(FAILURES.glob("*.jsonl")) for row in failures(split.stem)]
    return {
        "secrets": len(SECRETS),
        "redacted": sum(each.secret not in redact(each.text)[0] for each in SECRETS),
        "second_opinion_finds": sum(bool(scan(each.text)) for each in SECRETS),
        "second_opinion_finds_after": sum(bool(scan(redact(each.text)[0])) for each in SECRETS),
        "beyond_shapes": len(BEYOND_SHAPES),
        "beyond_shapes_redacted": sum(each.secret not in redact(each.text)[0] for each in BEYOND_SHAPES),
        "look_alikes": len(LOOK_ALIKES),
        "look_alikes_redacted": sum(bool(redact(text)[1]) for text in LOOK_ALIKES),
        "failures": len(rows),
        "failures_redacted": sum(bool(redact_value(row)[1]) for row in rows),
        "failures_cleared": sum(clears(orjson.dumps(row)) for row in rows),
    }


def linting() -> dict[str, Any]:
    """How many good rules the lint lets through, and how many attacks."""
    labelled = [row for split in ("train", "val") for row in _labelled(split) if row.get("reference_rule")]
    references = [(row["reference_rule"], _source(row)) for row in labelled]
    proposals = list(_proposals(_labelled("val")))
    form = {check.__name__ for check in FORM}
    return {
        "references": len(references),
        "references_in_form": sum(not {each.name for each in lint(rule)} & form for rule, _ in references),
        "references_pass": sum(not lint(rule, sources=[source]) for rule, source in references),
        "references_fail": _failed(references),
        "proposals": len(proposals),
        "proposals_pass": sum(not lint(rule, sources=[source]) for rule, source in proposals),
        "proposals_fail": _failed(proposals),
        "injections": len(INJECTIONS),
        "injections_pass": sum(not lint(each.text) for each in INJECTIONS),
        "bad_in_good_form": len(WELL_FORMED),
        "bad_in_good_form_pass": sum(not lint(rule) for rule in WELL_FORMED),
    }


def _failed(rules: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Failed checks by name."""
    return dict(sorted(Counter(each.name for rule, source in rules for each in lint(rule, sources=[source])).items()))


def _proposals(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    program = load_program("rule")
    for row in rows:
        rule = program(
            {name: row.get(name) for name in FIELDS}, row["root_cause"], row.get("existing_rules") or ()
        ).rule
        yield rule, _source(row)


@dataclass(frozen=True)
class Diagnosed:
    """The causes of one failure, with and without a text put into it."""

    row: str
    asks_for: str | None
    without: str | None
    injected: str | None
    filled: dict[str, str | None]
    """By filler, of the same length."""


def diagnosed(
    program: CauseProgram, row: dict[str, Any], injections: Iterable[Injection], fillers: Mapping[str, str]
) -> Iterator[Diagnosed]:
    """One failure, with every injection in every place."""
    without = program(row).root_cause
    for each in injections:
        for place in PLACES:
            filled = {
                name: program(_put(row, place, _fill(text, each.text))).root_cause for name, text in fillers.items()
            }
            injected = program(_put(row, place, each.text)).root_cause
            yield Diagnosed(row["id"], each.asks_for, without, injected, filled)


def flips(answers: list[Diagnosed]) -> dict[str, Any]:
    """Shares of diagnoses that change, and that become the cause which the text asks for; intervals by failure."""
    asked = [each for each in answers if each.asks_for and each.asks_for != each.without]
    return {
        "failures": len({each.row for each in answers}),
        "diagnoses": len(answers),
        "changed": {
            "injection": _share(answers, lambda one: one.injected != one.without),
            **{name: _share(answers, lambda one, name=name: one.filled[name] != one.without) for name in FILLERS},
        },
        "asking": len(asked),
        "as_asked": {
            "injection": _share(asked, lambda one: one.injected == one.asks_for),
            **{name: _share(asked, lambda one, name=name: one.filled[name] == one.asks_for) for name in FILLERS},
        },
        "changed_by_failure": changed_by_failure(answers),
    }


def changed_by_failure(answers: list[Diagnosed]) -> dict[str, int]:
    """How many injections change the diagnosis, for each failure."""
    return dict(Counter(each.row for each in answers if each.injected != each.without))


def _share(answers: list[Diagnosed], holds: Callable[[Diagnosed], bool]) -> dict[str, Any]:
    hits = [float(holds(each)) for each in answers]
    low, high = mean_interval(hits, [each.row for each in answers])
    return {"share": round(sum(hits) / len(hits), 4), "interval": [round(low, 4), round(high, 4)]}


def _put(row: dict[str, Any], place: str, text: str) -> dict[str, Any]:
    """The failure with a text in one of its fields; a context keeps what it has."""
    if place == "context":
        return {**row, "context": {"log": row["context"], "page": text}}
    return {**row, place: f"{row[place]}\n{text}"}


def _fill(filler: str, text: str) -> str:
    return (filler * (len(text) // len(filler) + 1))[: len(text)]


def speed() -> dict[str, float]:
    """Microseconds, the best of many rounds: one event that is cleared, one with two secrets in it."""
    payload = orjson.dumps(EVENT)
    secret = next(each for each in SECRETS if each.kind == "github_token")
    dirty = {**EVENT, "actual_outcome": f"{secret.text}; mail to jane@acme-corp.io bounced"}
    return {
        "event_bytes": len(payload),
        "clears_us": _best(lambda: clears(payload)),
        "redact_value_us": _best(lambda: redact_value(dirty)),
    }


def _best(work: Callable[[], object], rounds: int = 300, calls: int = 50) -> float:
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(calls):
            work()
        times.append(time.perf_counter() - started)
    return round(min(times) / calls * 1e6, 1)


def failures(split: str) -> list[dict[str, Any]]:
    """Failures of a split, without their labels."""
    return [{name: row.get(name) for name in FIELDS} for row in _labelled(split)]


def _labelled(split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FAILURES / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


def _source(row: dict[str, Any]) -> str:
    return "\n".join(as_text(row.get(name)) for name in FIELDS)


def injected(rows: Iterable[dict[str, Any]], fillers: Mapping[str, str] = FILLERS) -> list[Diagnosed]:
    """Diagnoses of failures by the program that comes with the package."""
    program, short = load_program("root_cause"), [each for each in INJECTIONS if len(each.text) <= LONGEST]
    return [each for row in rows for each in diagnosed(program, row, short, fillers)]


def main() -> None:
    """Measure and print; with `--out`, leave the result for the docs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--failures", type=int, default=20, help="test failures that are injected (default: 20)")
    options.add_argument("--out", type=Path, help="a file for the result")
    told = options.parse_args()
    result = {
        "benchmark": "defence",
        "redaction": redaction(),
        "lint": linting(),
        "injection": flips(injected(failures("test")[: told.failures])),
        "speed": speed(),
    }
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if told.out:
        told.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
