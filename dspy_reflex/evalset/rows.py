"""One object of a file to one record, with every problem of it said."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, cast

from pydantic import ValidationError

from dspy_reflex.evalset.labelled import LABEL_FIELDS, LabelledFailure
from dspy_reflex.evalset.lines import Line
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.records.failure import Failure

NAMES = ("id", "agent_id", "family", "group", "source")
"""Fields that name something; many files have numbers there."""
LISTS = ("also_acceptable", "key_points", "existing_rules")
ADVICE = {
    "task": "write what the agent was asked to do",
    "actual_outcome": "write what came out instead; for no output at all write (nothing)",
    "root_cause": "write one label of the taxonomy",
}
"""The fields that a row must have, and what to put there."""


def to_failure(line: Line, problems: Problems) -> Failure | None:
    """The failure of an object; None if it has a problem, which is noted."""
    data = _tidied(line.data)
    if not _has(data, ("task", "actual_outcome"), line.where, problems):
        return None
    try:
        return Failure.model_validate(data)
    except ValidationError as error:
        _note(error, line.where, problems)
        return None


def to_labelled(
    line: Line, labels: tuple[str, ...], problems: Problems, *, needs_cause: bool = True
) -> LabelledFailure | None:
    """The labelled failure of an object; None if it has a problem, which is noted."""
    data = _tidied(line.data)
    label = {name: data.pop(name) for name in LABEL_FIELDS if name in data}
    known = _known_labels(label, labels, line.where, problems)
    complete = not needs_cause or _has(label, ("root_cause",), line.where, problems)
    failure = to_failure(Line(line.where, data), problems)
    try:
        label.setdefault("root_cause", None)
        row = LabelledFailure.model_validate({**label, "failure": failure or BLANK, "where": line.where})
    except ValidationError as error:
        _note(error, line.where, problems)
        return None
    return row if failure and known and complete else None


BLANK = Failure(task="", actual_outcome="")
"""Stands in for a failure that could not be read, so that the problems of its label are found as well."""


def _tidied(data: dict[str, Any]) -> dict[str, Any]:
    """The same content in the types of the records: names as text, one synonym as a group of one, no empty names."""
    tidy = {name: value for name, value in data.items() if value is not None or name in ADVICE}
    for name in NAMES:
        value = tidy.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            tidy[name] = str(value)
        elif isinstance(value, str) and not value.strip():
            del tidy[name]
    for name in LISTS:
        if isinstance(tidy.get(name), str):
            tidy[name] = [tidy[name]]
    points = tidy.get("key_points")
    if isinstance(points, list):
        tidy["key_points"] = [[point] if isinstance(point, str) else point for point in cast(list[object], points)]
    return tidy


def _has(data: dict[str, Any], names: Iterable[str], where: str, problems: Problems) -> bool:
    """Whether the required fields are there and not blank."""
    complete = True
    for name in names:
        value = data.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            problems.add(where, f"{name} is {'blank' if name in data else 'missing'}; {ADVICE[name]}")
            complete = False
    return complete


def _known_labels(label: dict[str, Any], labels: tuple[str, ...], where: str, problems: Problems) -> bool:
    """Whether the labels of a row are in the taxonomy."""
    cause, others = label.get("root_cause"), label.get("also_acceptable")
    named = [("root_cause", cause)]
    named += [("also_acceptable", other) for other in (cast(list[object], others) if isinstance(others, list) else [])]
    named += [("votes", name) for vote in _votes(label) for name in (vote.get("root_cause"), vote.get("second"))]
    unknown = [(field, name) for field, name in named if isinstance(name, str) and name.strip() and name not in labels]
    for field, name in unknown:
        problems.add(where, f"{field} {name!r} is not in the taxonomy{_closest(name, labels)}")
    return not unknown


def _votes(label: dict[str, Any]) -> list[dict[str, Any]]:
    votes = label.get("votes")
    each = cast(list[object], votes) if isinstance(votes, list) else []
    return [cast(dict[str, Any], vote) for vote in each if isinstance(vote, dict)]


def _closest(name: str, labels: tuple[str, ...]) -> str:
    """What was probably meant, and what there is to choose from."""
    by_lower = {label.lower(): label for label in labels}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    meant = f"; did you mean {by_lower[near[0]]!r}?" if near else ";"
    return f"{meant} Its labels are {', '.join(labels)}"


def _note(error: ValidationError, where: str, problems: Problems) -> None:
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in detail["loc"]) or "row"
        problems.add(where, f"{place} cannot be used ({detail['msg']}); correct it or leave it out")
