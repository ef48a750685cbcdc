"""A store with rules in every state, each with words of its own, so that a leak shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pyarrow import parquet

from dspy_reflex.clock import now
from dspy_reflex.finetune.folder import Written
from dspy_reflex.finetune.formats.registry import format_of
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Row
from dspy_reflex.ids import new_id
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.review import FiledProposal, Review, State
from dspy_reflex.stages.export import export, training_rows
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store
from tests.store.events import diagnosed, event, filed

RULE = "When a call is throttled, wait and try again, at most three times."
OTHER = "Before a reply, read the first message of the conversation once more."
OPEN = Guard([])
"""Knows no eval set."""

WAYS: dict[State, tuple[State, ...]] = {
    "pending": (), "approved": ("approved",), "rejected": ("rejected",), "deferred": ("deferred",),
    "applied": ("approved", "applied"), "kept": ("approved", "applied", "kept"),
    "reverted": ("approved", "applied", "reverted"),
}  # fmt: skip
"""Along which states a proposal comes to where it is."""


def failed(
    store: Store, *texts: str, at: datetime | None = None, said: Any = None, **changed: Any
) -> list[LoggedFailure]:
    """Failures with these outcomes, each with a diagnosis, of which `said` changes something."""
    when = {"at": micros(at)} if at else {}
    told = [event(**{"task": f"Task of {text}", "actual_outcome": text, **when, **changed}) for text in texts]
    with store.write() as connection:
        outcomes.take_in(connection, told)
        found = outcomes.failures_of(connection, [one["id"] for one in told])
        diagnoses.add(connection, [diagnosed(one, **(said or {})) for one in found])
    return found


def ruled(
    store: Store, rule: str, state: State, *failures: LoggedFailure, correction: Any = None, original: str | None = None,
    policy: str | None = None, at: datetime | None = None, **changed: Any,
) -> FiledProposal:  # fmt: skip
    """A rule in a state, for these failures; its words are an edit if it had others originally."""
    one = filed(*(failure.id for failure in failures), rule=original or rule).model_copy(update=changed)
    edited = {"rule": rule} if original else {}
    with store.write() as connection:
        proposals.file(connection, one, actor="test")
        for to in WAYS[state]:
            one = proposals.move(connection, one, to, actor="ada", action=to, **(edited if to == "approved" else {}))
        if state not in ("pending", "deferred"):
            action = "reject" if state == "rejected" else "edit" if original else "approve"
            said = {"by": "ada", "action": action, "before": original or rule, "rule": rule, "policy": policy}
            told = {"id": new_id("rev"), "proposal_id": one.id, "at": at or now(), "correction": correction, **said}
            proposals.add_review(connection, Review.model_validate(told))
    return one


def against(one: FiledProposal, cause: str) -> dict[str, Any]:
    """What to change in a filed proposal so that it is against another cause."""
    return {"proposal": one.proposal.model_copy(update={"root_cause": cause})}


def known(store: Store, failure: LoggedFailure, cause: str, **said: Any) -> None:
    """A person named the cause of a failure."""
    with store.write() as connection:
        diagnoses.add(connection, [diagnosed(failure, cause, **{"program": "person", "model": "ada", **said})])


def drawn(store: Store, plan: Plan | None = None, guard: Guard = OPEN) -> list[Row]:
    """All rows of a store."""
    return list(training_rows(store, plan or Plan(), guard))


def exported(store: Store, out: Path, form: str = "trl", plan: Plan | None = None, **said: Any) -> Written:
    """An export that no eval set guards."""
    guard, licence = said.pop("guard", OPEN), said.pop("licence", "mit")
    return export(store, plan or Plan(), guard, format_of(form), out, licence=licence, **said)


def text_in(folder: Path) -> str:
    """All that an export says: every text of its rows as it is, and its other files."""
    rows = [text for file in sorted((folder / "data").rglob("*")) if file.is_file() for text in _texts(rows_in(file))]
    others = [path.read_text() for path in _files(folder) if "data" not in path.relative_to(folder).parts]
    return "\n".join([*rows, *others])


def rows_in(file: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    if file.suffix == ".parquet":
        return parquet.read_table(file).to_pylist()
    return [json.loads(line) for line in file.read_text().split("\n") if line]


def bytes_in(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in _files(folder)}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
