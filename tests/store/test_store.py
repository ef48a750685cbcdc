"""What a store promises, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.errors import StoreError
from dspy_reflex.store import audit, diagnoses, forget, migrate, outcomes, proposals, spending
from dspy_reflex.store.counts import by_state, count
from dspy_reflex.store.engine import engine_for
from dspy_reflex.store.outcomes import Query
from dspy_reflex.store.schema import metadata, micros
from dspy_reflex.store.store import Store
from tests.store.events import PROGRAM, diagnosed, event, filed, good


def test_migrations_make_the_tables_that_the_code_knows(store: Store) -> None:
    with store.read() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    assert differences == []


def test_the_newest_revision_is_the_one_that_is_looked_for() -> None:
    assert ScriptDirectory(str(migrate.SCRIPTS)).get_current_head() == migrate.HEAD


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    with Store(url) as opened, opened.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer version"):
        Store(url)


def test_a_store_of_an_older_version_keeps_what_it_holds(url: str) -> None:
    """And is then as one that was made anew."""
    one = filed("evt_1")
    with _as_of("0001", url) as connection:
        proposals.file(connection, one, actor="propose")
    with Store(url) as opened, opened.read() as connection:
        assert migrate.revision(connection) == migrate.HEAD
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert proposals.find(connection) == [one]
        assert audit.trail(connection, one.id) != []


@contextmanager
def _as_of(revision: str, url: str) -> Generator[Connection]:
    """A write transaction on a new store as an older version made it."""
    engine = engine_for(url)
    with engine.execution_options(writes=True).begin() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(migrate.SCRIPTS))
        command.upgrade(config, revision)
        yield connection
    engine.dispose()


def _open(url: str) -> None:
    Store(url).close()


def test_many_processes_may_make_a_store_at_once(url: str) -> None:
    spawn = get_context("spawn")
    openers = [spawn.Process(target=_open, args=(url,)) for _ in range(4)]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join()
    assert [opener.exitcode for opener in openers] == [0] * 4


def test_what_is_taken_in_comes_out_again(store: Store) -> None:
    told = event(
        context={"a": [1, None, {"b": "\u0000\ud800".encode("utf-8", "replace").decode()}]}, redacted={"jwt": 2}
    )
    with store.write() as connection:
        assert outcomes.take_in(connection, [told]) == 1
    with store.read() as connection:
        found = outcomes.failure(connection, told["id"])
    assert found is not None
    assert (micros(found.at), found.context, found.redacted) == (told["at"], told["context"], told["redacted"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=[]), min_size=1))
def test_any_text_can_be_stored(store: Store, text: str) -> None:
    told = event(task=text, actual_outcome=text, agent_id=text, parent_agent_id=text + "!")
    with store.write() as connection:
        outcomes.take_in(connection, [told])
    with store.read() as connection:
        found = outcomes.failure(connection, told["id"])
    assert found is not None
    assert len(found.task) == len(text)


def test_an_event_comes_in_once_however_often_it_is_given(store: Store) -> None:
    told = [event(), good(), good()]
    for _ in range(2):
        with store.write() as connection:
            outcomes.take_in(connection, [*told, told[0]])
    with store.read() as connection:
        counted = count(connection)
    assert (counted.good, counted.failures, counted.undiagnosed) == (2, {"high": 1}, 1)


def test_failures_are_found_by_agent_cause_severity_time_and_words(store: Store) -> None:
    early = micros(now() - timedelta(days=3))
    told = [event(agent_id="a", task="50% of_all"), event(agent_id="b", severity="low"), event(agent_id="a", at=early)]
    with store.write() as connection:
        outcomes.take_in(connection, told)
        found = outcomes.failures_of(connection, [told[0]["id"], told[1]["id"]])
        diagnoses.add(connection, [diagnosed(found[0], "tool_failure"), diagnosed(found[1], "knowledge_gap")])
    a, b, old = (one["id"] for one in told)
    wanted = {
        Query(): [b, a, old],
        Query(agents=("a",)): [a, old],
        Query(agents=()): [],
        Query(severity="low"): [b],
        Query(since=now() - timedelta(days=1)): [b, a],
        Query(text="50% OF_"): [a],
        Query(text="50_"): [],
        Query(cause="tool_failure"): [a],
        Query(limit=1): [b],
    }
    with store.read() as connection:
        for query, ids in wanted.items():
            assert sorted(one.id for one in outcomes.failures(connection, query)) == sorted(ids), query


def test_a_family_is_an_agent_and_all_below_it_even_in_a_circle(store: Store) -> None:
    pairs = [("lead", None), ("a", "lead"), ("a1", "a"), ("b", "lead"), ("x", "y"), ("y", "x")]
    with store.write() as connection:
        outcomes.take_in(connection, [good(agent_id=who, parent_agent_id=above) for who, above in pairs])
        outcomes.take_in(connection, [good(agent_id="a1")])
        outcomes.take_in(connection, [good(agent_id="c", parent_agent_id="lead"), good(agent_id="c")])
    with store.read() as connection:
        assert set(outcomes.family(connection, "lead")) == {"lead", "a", "a1", "b", "c"}
        assert set(outcomes.family(connection, "x")) == {"x", "y"}
        assert outcomes.family(connection, "nobody") == ("nobody",)


def test_only_what_this_program_has_not_seen_is_undiagnosed(store: Store) -> None:
    with store.write() as connection:
        outcomes.take_in(connection, [event(), event(), good()])
        first, second = diagnoses.undiagnosed(connection, PROGRAM)
        diagnoses.add(connection, [diagnosed(first)])
        diagnoses.add(connection, [diagnosed(second, model="fallback")], again=True)
    with store.read() as connection:
        assert [one.id for one in diagnoses.undiagnosed(connection, PROGRAM)] == [second.id]
        assert len(diagnoses.undiagnosed(connection, "root_cause@other")) == 2
        assert count(connection).undiagnosed == 0


def test_a_new_diagnosis_takes_the_place_of_the_former_also_in_the_counts(store: Store) -> None:
    with store.write() as connection:
        outcomes.take_in(connection, [event()])
        (failure,) = diagnoses.undiagnosed(connection, PROGRAM)
        diagnoses.add(connection, [diagnosed(failure, "tool_failure")])
        diagnoses.add(connection, [diagnosed(failure, None, program="root_cause@new")])
    with store.read() as connection:
        assert count(connection).causes == {"": 1}
        assert diagnoses.current(connection, [failure.id])[failure.id].root_cause is None
        assert len(diagnoses.diagnosed(connection)) == 1


def test_a_proposal_moves_only_along_its_ways_and_each_move_is_told(store: Store) -> None:
    one = filed("evt_1", "evt_2")
    with store.write() as connection:
        proposals.file(connection, one, actor="propose")
        approved = proposals.move(
            connection, one, "approved", actor="ada", action="approve", reason="yes", approval="f" * 64
        )
        with pytest.raises(StoreError, match="cannot become kept"):
            proposals.move(connection, approved, "kept", actor="ada", action="keep")
    with store.read() as connection:
        found = proposals.get(connection, one.id[:12])
        moves = [(line.actor, line.action, line.before, line.after) for line in audit.trail(connection, one.id)]
    assert found == approved
    assert moves == [("propose", "propose", None, "pending"), ("ada", "approve", "pending", "approved")]


def test_two_reviewers_at_once_are_not_both_heard(store: Store) -> None:
    one = filed("evt_1")
    with store.write() as connection:
        proposals.file(connection, one, actor="propose")
    heard: list[str] = []
    barrier = threading.Barrier(2)

    def review(to: str) -> None:
        barrier.wait()
        try:
            with store.write() as connection:
                proposals.move(connection, one, to, actor=to, action=to)  # pyright: ignore[reportArgumentType]
            heard.append(to)
        except StoreError:
            pass

    reviewers = [threading.Thread(target=review, args=(to,)) for to in ("approved", "rejected")]
    for reviewer in reviewers:
        reviewer.start()
    for reviewer in reviewers:
        reviewer.join()
    with store.read() as connection:
        assert [proposals.get(connection, one.id).state] == heard
        assert by_state(connection) == {heard[0]: 1}


def test_no_proposal_and_two_proposals_of_an_id_are_refused(store: Store) -> None:
    with store.write() as connection:
        for _ in range(2):
            proposals.file(connection, filed("evt_1"), actor="propose")
        with pytest.raises(StoreError, match="more than one"):
            proposals.get(connection, "prop_")
        with pytest.raises(StoreError, match="no proposal"):
            proposals.get(connection, "prop_%")


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.write() as connection:
            outcomes.take_in(connection, [event()])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with store.read() as connection:
        assert count(connection).failures == {}


def test_what_is_forgotten_is_gone_and_stays_away(store: Store) -> None:
    told = event()
    with store.write() as connection:
        outcomes.take_in(connection, [told])
        diagnoses.add(connection, [diagnosed(outcomes.failures_of(connection, [told["id"]])[0])])
        proposals.file(connection, filed(told["id"], "evt_other"), actor="propose")
        forget.forget(connection, told["id"], actor="ada", reason="asked to")
    with store.write() as connection:
        assert outcomes.take_in(connection, [told]) == 0
        assert outcomes.failure(connection, told["id"]) is None
        assert diagnoses.current(connection, [told["id"]]) == {}
        (left,) = proposals.find(connection)
        assert left.proposal.failure_ids == ("evt_other",)
        assert forget.forgotten(connection) == {told["id"]}
        assert audit.trail(connection, told["id"])[0].reason == "asked to"
        with pytest.raises(StoreError, match="no such failure"):
            forget.forget(connection, told["id"], actor="ada", reason="again")


def test_what_is_old_goes_but_not_its_counts_nor_what_a_rule_rests_on(store: Store) -> None:
    old = micros(now() - timedelta(days=40))
    told = [event(at=old), event(at=old), event()]
    with store.write() as connection:
        outcomes.take_in(connection, told)
        proposals.file(connection, filed(told[0]["id"]), actor="propose")
        assert forget.prune(connection, now() - timedelta(days=30)) == 1
    with store.read() as connection:
        left = {one.id for one in outcomes.failures(connection, Query())}
        assert left == {told[0]["id"], told[2]["id"]}
        assert count(connection).failures == {"high": 3}


def test_what_grew_old_is_not_counted_again(store: Store) -> None:
    """Neither from a file that is given again, nor after it was pruned again; what is as old and new is."""
    old = micros(now() - timedelta(days=40))
    told = [event(at=old), good(at=old)]
    for new in (2, 0):
        with store.write() as connection:
            assert outcomes.take_in(connection, told) == new
            assert forget.prune(connection, now() - timedelta(days=30)) == new
    with store.write() as connection:
        assert outcomes.take_in(connection, [event(at=old)]) == 1
        counted = count(connection)
    assert (counted.good, counted.failures) == (1, {"high": 2})


def test_money_is_counted_by_day(store: Store) -> None:
    with store.write() as connection:
        for model in ("a", "a", "b"):
            spending.spend(connection, model, calls=1, input_tokens=10, output_tokens=2, usd=0.5)
    with store.read() as connection:
        assert spending.spent_today(connection) == pytest.approx(1.5)


def test_lessons_are_found_by_mechanism(store: Store) -> None:
    one = filed("evt_1")
    with store.write() as connection:
        proposals.learn(connection, one, "rejected", "too broad")
    with store.read() as connection:
        (lesson,) = proposals.lessons_on(connection, "tool_failure", "rate_limit")
        assert (lesson.kind, lesson.rule, lesson.reason) == ("rejected", one.rule, "too broad")
        assert proposals.lessons_on(connection, "tool_failure", "timeout") == []


@pytest.mark.parametrize("wrong", ["mysql://h/d", "nonsense", "sqlite:////proc/none/store.db"])
def test_a_url_that_cannot_be_opened_is_said_in_a_sentence(wrong: str) -> None:
    with pytest.raises(StoreError, match=r"REFLEX_DATABASE_URL|cannot be made"):
        Store(wrong)


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        Store("postgresql://me:secret@127.0.0.1:1/x?connect_timeout=1")
    assert "secret" not in str(caught.value)
