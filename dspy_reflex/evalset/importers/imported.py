"""What every importer gives: rows in our line format, the annotators' explanations apart, and a count of what is not there."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from dspy_reflex.evalset.lines import Line
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.rows import to_failure
from dspy_reflex.runtime.inputs import LIMITS
from dspy_reflex.untrusted import clip

Row = dict[str, JsonValue]
"""One labelled failure, as a line of a file has it."""

NOTHING = "(nothing)"
"""Stands where a run put out nothing."""
UNUSABLE = "could not be used"
"""The reason of records that have a problem."""
GROUP_CHARS = 160


@dataclass(frozen=True, slots=True)
class Imported:
    """The rows of a data set, with its native labels."""

    rows: tuple[Row, ...]
    explanations: Mapping[str, str]
    """What annotators wrote, by row id. Never part of a row: it gives the label away."""
    skipped: Mapping[str, int]
    """How many records gave no row, by reason."""

    @property
    def labels(self) -> dict[str, int]:
        """How many rows have each root cause, most frequent first; rows without one are not counted."""
        named = Counter(cause for row in self.rows if isinstance(cause := row["root_cause"], str))
        return dict(named.most_common())


@dataclass
class Gathering:
    """Takes the rows of an importer, one by one, and keeps those that can be used."""

    problems: Problems
    _rows: list[Row] = field(default_factory=list[Row])
    _explanations: dict[str, str] = field(default_factory=dict[str, str])
    _skipped: Counter[str] = field(default_factory=Counter[str])
    _first: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, where: str, row: Row, explanation: str = "") -> None:
        """Take a row, or note why it cannot be used."""
        if complaint := _unwritable(row):
            self.problems.add(where, complaint)
            return
        if to_failure(Line(where, row), self.problems) is None:
            return
        name = str(row["id"])
        if name in self._first:
            self.problems.add(where, f"id {name!r} is already at {self._first[name]}; give every failure its own id")
            return
        self._first[name] = where
        self._rows.append(row)
        if explanation.strip():
            self._explanations[name] = explanation.strip()

    def skip(self, reason: str) -> None:
        """Count a record that is in order and gives no row."""
        self._skipped[reason] += 1

    def done(self) -> Imported:
        """Everything that was taken."""
        unusable = {UNUSABLE: self.problems.places} if self.problems.found else {}
        return Imported(tuple(self._rows), self._explanations, dict(self._skipped.most_common()) | unusable)


def make_row(
    name: str,
    *,
    source: str,
    agent: str,
    task: str,
    actual: str,
    trace: str,
    labels: Sequence[str],
    native: Sequence[str],
    expected: str = "",
) -> Row:
    """A row of a run, cut to what a program can see of it.

    Args:
        name: The id.
        source: Which data set, and which part of it.
        agent: Who failed.
        task: What the agent was asked; also decides the group.
        actual: The run's final answer, or its last step.
        trace: Excerpt of the run; see `excerpt`.
        labels: Labels of the native taxonomy, the main one first; none if nobody named a cause.
        native: The labels word for word as published.
        expected: What should have come out.
    """
    others: list[JsonValue] = [*dict.fromkeys(label for label in labels[1:] if label != labels[0])]
    return {
        "id": name,
        "source": source,
        "group": question_group(task),
        "agent_id": agent,
        "task": clip(task.strip(), LIMITS["task"]),
        "expected_outcome": clip(expected.strip(), LIMITS["expected_outcome"]) or None,
        "actual_outcome": clip(actual.strip(), LIMITS["actual_outcome"]) or NOTHING,
        "context": {"trace_excerpt": trace},
        "root_cause": labels[0] if labels else None,
        "also_acceptable": others,
        "label_native": [*native],
    }


def question_group(task: str) -> str:
    """The same group for the same question in any data set, however it is spaced and punctuated."""
    letters = re.sub(r"[\W_]+", "", task.lower())[:GROUP_CHARS]
    return f"q:{hashlib.md5(letters.encode(), usedforsecurity=False).hexdigest()[:10]}"


def canonical(label: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str | None:
    """The known label that is meant, by letters and digits alone; None if there is none.

    Args:
        label: As published; data sets spell their own labels in several ways.
        known: The labels of the taxonomy.
        aliases: Other names of known labels.
    """
    by_letters = {_letters(name): name for name in known}
    by_letters |= {_letters(alias): name for alias, name in (aliases or {}).items()}
    return by_letters.get(_letters(label))


def _letters(label: str) -> str:
    return re.sub(r"[\W_]+", "", label.casefold())


def _unwritable(row: Row) -> str:
    """Why a row could not be written as a line of JSON; empty if it can."""
    try:
        json.dumps(row, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "half a character (a lone \\ud800-\\udfff escape); write the whole character"
    except ValueError:
        return "it holds NaN or an infinity, which is no JSON number; use null or leave the field out"
    except TypeError as error:
        return f"it holds a value that is no JSON ({error}); write it as text"
    return ""
