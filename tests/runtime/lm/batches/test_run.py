"""Chats through batches, whatever comes in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import ModelError, ModelUnavailableError, RunError
from dspy_reflex.runtime.lm.batches import api, run
from dspy_reflex.runtime.lm.batches.run import BatchRun, complete_all, digest_of
from dspy_reflex.runtime.lm.batches.state import State
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Message
from tests.runtime.lm.batch_server import (
    CANCELED,
    ERRORED,
    EXPIRED,
    INVALID,
    LOST,
    BatchServer,
    asked,
    batch_server,
    echo,
)
from tests.runtime.lm.loopback import KEY, Reply, answer, drop, error, garbage, refusal

TEXTS = [f"question {number}" for number in range(7)]
CHATS: list[list[Message]] = [[{"role": "user", "content": text}] for text in TEXTS]


def claude(server: BatchServer, attempts: int = 2) -> Claude:
    """A client of the server."""
    return Claude("anthropic/claude-test", url=server.url, key=KEY, attempts=attempts)


def texts(
    server: BatchServer, folder: Path, chats: list[list[Message]] = CHATS, tell: Callable[[str], None] = lambda _: None
) -> list[str | None]:
    """What a run that is started in a folder comes back with."""
    return [one and one.text for one in complete_all(claude(server), chats, folder / "batch.json", tell)]


def once(server: BatchServer) -> bool:
    """Whether each question was submitted, and none twice."""
    return server.submitted == dict.fromkeys(TEXTS, 1)


def failing(*fates: Reply, at: int = 3) -> Callable[[dict[str, Any]], Reply]:
    """Answer everything but one question, to which these things happen first."""
    left = list(fates)
    return lambda params: left.pop(0) if asked(params) == TEXTS[at] and left else echo(params)


def test_answers_come_in_order(tmp_path: Path) -> None:
    """Though results come in another one; and the way there is told."""
    told = list[str]()
    with batch_server() as server:
        assert texts(server, tmp_path, tell=told.append) == TEXTS
    assert once(server)
    assert told == ["msgbatch_0000: 7 processing", "msgbatch_0000: 7 succeeded"]


def test_a_finished_run_asks_for_nothing(tmp_path: Path) -> None:
    """Not even whether it is finished: the provider may have dropped the results since."""
    with batch_server() as server:
        texts(server, tmp_path)
        server.verbs.clear()
        assert texts(server, tmp_path) == TEXTS
    assert server.verbs == []


def test_nothing_is_nothing(tmp_path: Path) -> None:
    with batch_server() as server:
        assert texts(server, tmp_path, []) == []
    assert server.verbs == []


def test_chats_are_divided_by_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are submitted before one is waited for."""
    monkeypatch.setattr(api, "MAX_REQUESTS", 3)
    with batch_server() as server:
        assert texts(server, tmp_path) == TEXTS
    assert [len(batch.requests) for batch in server.batches] == [3, 3, 1]
    assert server.verbs[:4] == ["create", "create", "create", "retrieve"]
    assert once(server)


@pytest.mark.parametrize("fate", [ERRORED, EXPIRED])
def test_what_failed_is_asked_once_more(fate: Reply, tmp_path: Path) -> None:
    """And nothing else is."""
    with batch_server(failing(fate)) as server:
        assert texts(server, tmp_path) == TEXTS
    assert [len(batch.requests) for batch in server.batches] == [7, 1]


def test_what_fails_again_has_no_answer_until_the_next_start(tmp_path: Path) -> None:
    """A sitting asks twice at most; the next one goes on."""
    with batch_server(failing(ERRORED, EXPIRED)) as server:
        assert texts(server, tmp_path) == [*TEXTS[:3], None, *TEXTS[4:]]
        assert texts(server, tmp_path) == TEXTS
    assert [len(batch.requests) for batch in server.batches] == [7, 1, 1]


def test_what_was_canceled_is_not_asked_again_at_once(tmp_path: Path) -> None:
    """Somebody meant it. To start again is to mean something else."""
    with batch_server(failing(CANCELED)) as server:
        assert texts(server, tmp_path)[3] is None
        assert len(server.batches) == 1
        assert texts(server, tmp_path) == TEXTS


def test_a_batch_that_somebody_cancels_ends(tmp_path: Path) -> None:
    """In the provider's console, say, while it is waited for."""
    with batch_server(polls=999) as server:
        somebody = claude(server)

        def cancel(_: str) -> None:
            somebody.sdk.messages.batches.cancel("msgbatch_0000")

        assert texts(server, tmp_path, tell=cancel) == [None] * 7
    assert len(server.batches) == 1


def test_what_is_canceled_after_a_kill_is_not_asked_again_either(tmp_path: Path) -> None:
    """The sitting that fetches it did not know of it when it began."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with batch_server(failing(CANCELED)) as server:
        with pytest.raises(KeyboardInterrupt):
            texts(server, tmp_path, tell=interrupt)
        assert texts(server, tmp_path)[3] is None
        assert len(server.batches) == 1


def test_what_can_never_be_answered_is_not_asked_again(tmp_path: Path) -> None:
    """In no sitting."""
    with batch_server(failing(INVALID, INVALID)) as server:
        for _ in range(2):
            assert texts(server, tmp_path)[3] is None
    assert len(server.batches) == 1


def test_a_refusal_is_an_answer(tmp_path: Path) -> None:
    with batch_server(failing(refusal("No."))) as server:
        found = complete_all(claude(server), CHATS, tmp_path / "batch.json", lambda _: None)[3]
    assert found is not None
    assert (found.text, found.finish) == ("No.", "refusal")
    assert once(server)


# Submissions without an answer


@pytest.mark.parametrize("fate", [LOST, drop(), error(500), garbage()])
def test_a_submission_without_an_answer_is_looked_for(fate: Reply, tmp_path: Path) -> None:
    """It is found where it arrived, and sent again where it did not."""
    with batch_server(create=[fate]) as server:
        assert texts(server, tmp_path) == TEXTS
    assert once(server)
    assert server.verbs[:2] == ["create", "list"]


def test_others_batches_are_not_taken_for_it(tmp_path: Path) -> None:
    """Same size, same time, ended or not; those of another size or time are not even waited for."""
    others = [{"custom_id": f"other-{number}", "params": {"messages": [{"content": "x"}]}} for number in range(7)]
    with batch_server(lambda _: answer("mine"), create=[drop()]) as server:
        server.hold(others, created=datetime.now(UTC) - timedelta(days=2)).polls = 999_999
        server.hold(others[1:]).polls = 999_999
        server.hold(others)
        server.end(server.hold(others))
        assert texts(server, tmp_path) == ["mine"] * 7
    assert len(server.batches) == 5


def test_two_batches_of_a_size_are_not_mixed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second submission gets no answer, and the first is of its size."""
    monkeypatch.setattr(api, "MAX_REQUESTS", 3)
    with batch_server(create=[error(429), LOST, LOST]) as server:
        assert texts(server, tmp_path) == TEXTS
    assert once(server)


def test_a_batch_of_ones_own_is_not_waited_for_in_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two never ends, the second did not arrive; the next sitting sends it all the same."""
    monkeypatch.setattr(api, "MAX_REQUESTS", 3)

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with batch_server(polls=999_999) as server:
        for fate in (drop(), None):

            def second(what: str, fate: Reply | None = fate) -> None:
                if what == "before create" and len(server.batches) == 1 and fate:
                    server.faults["create"] = [fate]

            server.watch = second
            with pytest.raises(KeyboardInterrupt):
                texts(server, tmp_path, CHATS[:6], interrupt)
    assert [len(batch.requests) for batch in server.batches] == [3, 3]


def test_where_there_is_no_room_the_rest_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider takes one batch at a time here, and says 429 to others."""
    monkeypatch.setattr(api, "MAX_REQUESTS", 3)
    with batch_server() as server:

        def one_at_a_time(what: str) -> None:
            if what == "before create" and any(batch.results is None for batch in server.batches):
                server.faults["create"] = [error(429)]

        server.watch = one_at_a_time
        assert texts(server, tmp_path) == TEXTS
    assert once(server)
    assert [len(batch.requests) for batch in server.batches] == [3, 3, 1]


def test_a_submission_that_never_gets_through_ends_the_sitting_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with batch_server(create=[error(529)] * 4) as server:
        with pytest.raises(ModelUnavailableError, match="HTTP 529"):
            texts(server, tmp_path)
        assert texts(server, tmp_path) == TEXTS
    assert once(server)


# Waiting


def test_an_outage_does_not_end_the_waiting(tmp_path: Path) -> None:
    """It may be a long night."""
    with batch_server(retrieve=[error(529)] * 9) as server:
        assert texts(server, tmp_path) == TEXTS


def test_a_long_outage_does_and_the_next_sitting_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PATIENCE", 1)
    with batch_server(retrieve=[error(503, retry_after="0")] * 4) as server:
        with pytest.raises(ModelUnavailableError, match="HTTP 503"):
            texts(server, tmp_path)
        assert texts(server, tmp_path) == TEXTS
    assert once(server)


def test_an_interrupted_sitting_is_gone_on_with(tmp_path: Path) -> None:
    """Ctrl-C while waiting."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with batch_server() as server:
        with pytest.raises(KeyboardInterrupt):
            texts(server, tmp_path, tell=interrupt)
        assert texts(server, tmp_path) == TEXTS
    assert once(server)


def test_results_that_never_come_end_the_sitting(tmp_path: Path) -> None:
    with batch_server(results=[Reply("short")] * 2) as server:
        with pytest.raises(ModelError, match="did not come as a whole"):
            texts(server, tmp_path)
        assert texts(server, tmp_path) == TEXTS
    assert once(server)


# The folder


def test_a_folder_of_other_questions_is_refused(tmp_path: Path) -> None:
    """Or of another length of answers: the same questions in another order are others."""
    with batch_server() as server:
        texts(server, tmp_path)
        with pytest.raises(RunError, match="batches of other questions"):
            texts(server, tmp_path, CHATS[::-1])
        longer = Claude("anthropic/claude-test", url=server.url, key=KEY, max_tokens=5)
        with pytest.raises(RunError, match="batches of other questions"):
            complete_all(longer, CHATS, tmp_path / "batch.json", lambda _: None)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"batches": [{"places": 1}]}', b"\xff", b'{"batches": [3]}'])
def test_a_damaged_file_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    """Nothing is submitted: what it said may be under way."""
    (tmp_path / "batch.json").write_bytes(content)
    with batch_server() as server, pytest.raises(RunError, match=r"batch\.json: damaged"):
        texts(server, tmp_path)
    assert server.verbs == []


def test_damaged_results_can_be_fetched_again(tmp_path: Path) -> None:
    """As the sentence says."""
    with batch_server() as server:
        texts(server, tmp_path)
        (results,) = tmp_path.glob("*.jsonl")
        results.write_bytes(results.read_bytes()[:-20])
        with pytest.raises(RunError, match="remove it, and the results are fetched again"):
            texts(server, tmp_path)
        results.unlink()
        assert texts(server, tmp_path) == TEXTS
    assert once(server)


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    """Two that start at once would both submit."""
    with batch_server() as server:

        def second(_: str) -> None:
            with pytest.raises(RunError, match="in use by another process"):
                texts(server, tmp_path)

        assert texts(server, tmp_path, tell=second) == TEXTS
    assert once(server)


def test_the_file_holds_neither_key_nor_question(tmp_path: Path) -> None:
    """It may be looked at, and shown."""
    with batch_server() as server:
        texts(server, tmp_path)
    content = (tmp_path / "batch.json").read_text()
    assert KEY not in content
    assert TEXTS[0] not in content
    assert json.loads(content)["batches"][0]["id"] == "msgbatch_0000"


def test_what_is_still_to_be_paid_for_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at first; nothing of what is under way; later only what failed."""
    monkeypatch.setattr(api, "MAX_REQUESTS", 3)
    with batch_server(failing(CANCELED)) as server:
        model = claude(server)
        with State(tmp_path / "batch.json", digest_of(model, CHATS)) as state:
            batches = BatchRun(model, CHATS, state, lambda _: None)
            before = batches.to_pay()
            server.faults["retrieve"] = [error(400)]
            with pytest.raises(ModelError):
                batches.finish()
            under_way = batches.to_pay()
            batches.finish()
            assert (before, under_way, batches.to_pay()) == (list(range(7)), [], [3])
