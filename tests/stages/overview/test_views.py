"""What the store says when it is asked: lists, one failure, counts, who did what; and what goes for good."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from dspy_reflex.clock import now
from dspy_reflex.errors import ConfigError, StoreError
from dspy_reflex.recorder.spool import Bad
from dspy_reflex.stages.overview.failures import list_failures, show_failure
from dspy_reflex.stages.overview.keep import STORE, forget, history, prune
from dspy_reflex.stages.overview.status import status
from dspy_reflex.store import diagnoses, outcomes, proposals, spending
from dspy_reflex.store.ingest import set_aside
from dspy_reflex.store.outcomes import Query
from dspy_reflex.store.schema import micros, quarantine
from dspy_reflex.store.store import Store
from tests.store.events import diagnosed, event, filed, good


def take_in(store: Store, *events: dict[str, object]) -> list[str]:
    with store.write() as connection:
        outcomes.take_in(connection, events)
    return [str(one["id"]) for one in events]


def test_a_list_tells_what_is_said_of_each(store: Store) -> None:
    first, second = take_in(store, event(at=1), event(at=2))
    with store.write() as connection:
        diagnoses.add(connection, [diagnosed(outcomes.failures_of(connection, [first])[0])])
    newest, oldest = list_failures(store, Query())
    assert (newest.failure.id, newest.diagnosis) == (second, None)
    assert oldest.diagnosis is not None
    assert oldest.diagnosis.root_cause == "tool_failure"


def test_a_failure_is_shown_with_the_rules_it_stands_behind(store: Store) -> None:
    (one,) = take_in(store, event(redacted={"jwt": 1}))
    with store.write() as connection:
        proposals.file(connection, filed(one, "evt_other"), actor="propose")
        proposals.file(connection, filed("evt_other"), actor="propose")
    found = show_failure(store, one)
    assert (found.failure.redacted, found.diagnosis, len(found.proposals)) == ({"jwt": 1}, None, 1)


def test_a_failure_that_is_not_there_is_told_from_one_that_was_forgotten(store: Store) -> None:
    (one,) = take_in(store, event())
    with pytest.raises(StoreError, match="no such failure"):
        show_failure(store, "evt_none")
    forget(store, one, actor="ada", reason="a customer asked")
    with pytest.raises(StoreError, match=r"forgotten on \d{4}-\d\d-\d\d by ada: a customer asked"):
        show_failure(store, one)
    assert [(line.actor, line.action) for line in history(store, one)] == [("ada", "forget")]


def test_status_counts_everything_there_is(store: Store) -> None:
    old = micros(now() - timedelta(days=20))
    first, *_ = take_in(store, event(), event(severity="low"), good(), good(agent_id="other"), event(at=old))
    with store.write() as connection:
        diagnoses.add(connection, [diagnosed(outcomes.failures_of(connection, [first])[0], None)])
        proposals.file(connection, filed(first), actor="propose")
        set_aside(connection, "a.jsonl", [Bad(3, "torn", b"{")])
        spending.spend(connection, "m", calls=1, input_tokens=1, output_tokens=1, usd=0.25)
    found = status(store)
    assert (found.outcomes, found.good, found.failures) == (5, 2, {"high": 2, "low": 1})
    assert (found.causes, found.undiagnosed, found.proposals) == ({"": 1}, 2, {"pending": 1})
    assert (found.quarantined, found.spent_today_usd) == (1, 0.25)
    recent = status(store, since=now() - timedelta(days=2), agents=["veya"])
    assert (recent.good, recent.failures, recent.undiagnosed) == (1, {"high": 1, "low": 1}, 1)


def test_old_outcomes_go_and_what_could_not_be_read_too_but_counts_stay(store: Store) -> None:
    take_in(store, event(at=micros(now() - timedelta(days=40))), event())
    with pytest.raises(ConfigError, match="retention_days"):
        prune(store, None, actor="ada")
    with store.write() as connection:
        set_aside(connection, "old.jsonl", [Bad(3, "torn", b"{")])
        set_aside(connection, "new.jsonl", [Bad(3, "torn", b"{")])
        connection.execute(
            update(quarantine).where(quarantine.c.file == "old.jsonl").values(at=now() - timedelta(days=31))
        )
    assert prune(store, 30, actor="ada") == 1
    assert status(store).quarantined == 1
    assert sum(status(store).failures.values()) == 2
    (line,) = history(store, STORE)
    assert (line.actor, line.action, line.reason) == ("ada", "prune", "1 outcomes were older than 30 days")
