"""The client of Message Batches against a real server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import ConfigError, ModelError, ModelNotConfiguredError, ModelUnavailableError
from dspy_reflex.runtime.lm.batches import api
from dspy_reflex.runtime.lm.batches.api import ClaudeBatches, Unanswered, in_batches, read_results
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Completion, Message
from tests.runtime.lm.batch_server import (
    CANCELED,
    ERRORED,
    EXPIRED,
    INVALID,
    LOST,
    SHORT,
    BatchServer,
    asked,
    batch_server,
)
from tests.runtime.lm.loopback import KEY, Reply, answer, cut, drop, error, garbage, refusal, torn


def claude(server: BatchServer, attempts: int = 3) -> Claude:
    """A client of the server."""
    return Claude("anthropic/claude-test", url=server.url, key=KEY, attempts=attempts)


def chat(text: str) -> list[Message]:
    """A question with a demo, and a system text that is long enough to be cached."""
    return [
        {"role": "system", "content": "Be brief. " * 300},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": text},
    ]


def chats(*texts: str) -> dict[str, list[Message]]:
    """Questions by ids."""
    return {f"id-{text}": chat(text) for text in texts}


def ended(server: BatchServer, batches: ClaudeBatches, *texts: str) -> str:
    """A batch that has come to its end."""
    found = batches.submit(chats(*texts))
    server.end(server.batches[-1])
    return found


def test_a_request_of_a_batch_is_what_a_call_sends() -> None:
    """To the last mark, so that one's answer may stand in for the other's."""
    with batch_server() as server:
        model = claude(server)
        model.complete(chat("one"))
        ClaudeBatches(model).submit({"a": chat("one")})
    (request,) = server.batches[0].requests
    assert request == {"custom_id": "a", "params": server.requests[0].body}
    assert "cache_control" in json.dumps(request)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "ä", "a.b", "a\n"])
def test_an_id_that_the_api_refuses_is_named(name: str) -> None:
    """Before anything is sent."""
    with batch_server() as server, pytest.raises(ConfigError, match="is no id for a batch"):
        ClaudeBatches(claude(server)).submit({"fine": chat("one"), name: chat("two")})
    assert server.verbs == []


@pytest.mark.parametrize("no", [error(429), error(529), error(429, retry_after="0.001")])
def test_a_submission_is_sent_again_after_a_plain_no(no: Reply) -> None:
    """Nothing came of it, so nothing is paid for twice."""
    with batch_server(create=[no, no]) as server:
        assert ClaudeBatches(claude(server)).submit(chats("one")) == "msgbatch_0000"
    assert server.verbs == ["create"] * 3
    assert server.submitted == {"one": 1}


def test_a_no_after_all_attempts_is_an_outage() -> None:
    with batch_server(create=[error(529)] * 9) as server, pytest.raises(ModelUnavailableError, match="in 2 attempts"):
        ClaudeBatches(claude(server, attempts=2)).submit(chats("one"))
    assert server.verbs == ["create"] * 2


@pytest.mark.parametrize("fate", [LOST, drop(), error(500), error(503), error(408), garbage()])
def test_a_submission_without_a_clear_answer_is_not_sent_again(fate: Reply) -> None:
    """It may have arrived; the caller has to look."""
    with batch_server(create=[fate]) as server, pytest.raises(ModelUnavailableError, match="in 1 attempt,"):
        ClaudeBatches(claude(server)).submit(chats("one"))
    assert server.verbs == ["create"]


@pytest.mark.parametrize(("status", "kind"), [(400, ModelError), (401, ModelNotConfiguredError), (413, ModelError)])
def test_a_batch_that_is_never_taken_is_said_at_once(status: int, kind: type[ModelError]) -> None:
    with batch_server(create=[error(status, f"bad {KEY}")]) as server, pytest.raises(kind, match=r"bad \[key\]"):
        ClaudeBatches(claude(server)).submit(chats("one"))
    assert server.verbs == ["create"]


def test_a_batch_tells_how_far_it_is() -> None:
    """In words that leave out what is not the case."""
    with batch_server(lambda params: EXPIRED if asked(params) == "two" else answer()) as server:
        batches = ClaudeBatches(claude(server))
        name = batches.submit(chats("one", "two"))
        assert (str(batches.poll(name)), batches.poll(name).ended) == ("2 processing", True)
        assert (str(batches.poll(name)), batches.poll(name).requests) == ("1 succeeded, 1 expired", 2)


@pytest.mark.parametrize("bad", [error(429), error(529), drop(), garbage()])
def test_a_poll_is_tried_again(bad: Reply) -> None:
    with batch_server(retrieve=[bad, bad]) as server:
        batches = ClaudeBatches(claude(server))
        assert not batches.poll(batches.submit(chats("one"))).ended


def test_results_come_by_id_whatever_their_order() -> None:
    """Each kind of answer, and each reason for none; a line may hold what Python takes for its end."""
    replies = {
        "fine": answer("yes\u2028and\x85no"),
        "cached": answer("ok", cache_read_input_tokens=900, cache_creation_input_tokens=50),
        "long": cut("half"),
        "refused": refusal("No."),
        "failed": ERRORED,
        "wrong": INVALID,
        "late": EXPIRED,
        "stopped": CANCELED,
    }
    with batch_server(lambda params: replies[asked(params)]) as server:
        batches = ClaudeBatches(claude(server))
        lines = batches.results(ended(server, batches, *replies))
    assert json.loads(lines.partition("\n")[0])["custom_id"] == "id-stopped"
    assert read_results(lines) == {
        "id-fine": Completion("yes\u2028and\x85no", "stop", 11, 7),
        "id-cached": Completion("ok", "stop", 961, 7, 900, 50),
        "id-long": Completion("half", "length", 11, 7),
        "id-refused": Completion("No.", "refusal", 11, 7),
        "id-failed": Unanswered("errored", "api_error: Internal server error"),
        "id-wrong": Unanswered("invalid", "invalid_request_error: prompt is too long"),
        "id-late": Unanswered("expired"),
        "id-stopped": Unanswered("canceled"),
    }


@pytest.mark.parametrize("bad", [torn(), SHORT, error(529), drop(), garbage()])
def test_results_are_fetched_until_they_are_whole(bad: Reply) -> None:
    """Also when they end early with nothing in HTTP that says so."""
    with batch_server(results=[bad]) as server:
        batches = ClaudeBatches(claude(server))
        lines = batches.results(ended(server, batches, "one", "two", "three"))
    assert len(read_results(lines)) == 3
    assert server.verbs.count("results") == 2


def test_results_that_stay_in_part_are_no_results() -> None:
    with batch_server(results=[SHORT] * 9) as server:
        batches = ClaudeBatches(claude(server))
        with pytest.raises(ModelError, match="did not come as a whole"):
            batches.results(ended(server, batches, "one", "two"))


def test_results_that_the_provider_has_dropped_are_said_to_be() -> None:
    """After 29 days."""
    with batch_server() as server:
        batches = ClaudeBatches(claude(server))
        name = ended(server, batches, "one")
        server.batches[0].archived = True
        with pytest.raises(ModelError, match="are not kept any more"):
            batches.results(name)


def test_batches_since_a_moment_come_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first, and no page more than needed."""
    monkeypatch.setattr(api, "PAGE", 2)
    now = datetime.now(UTC)
    with batch_server() as server:
        for hours in range(9, -1, -1):
            server.hold([{"custom_id": "a", "params": {}}] * hours, created=now - timedelta(hours=hours))
        found = list(ClaudeBatches(claude(server)).since(now - timedelta(hours=4.5)))
    assert [status.requests for status in found] == [0, 1, 2, 3, 4]
    assert server.verbs == ["list"] * 3


def test_all_batches_may_be_recent() -> None:
    with batch_server() as server:
        batches = ClaudeBatches(claude(server))
        batches.submit(chats("one"))
        assert len(list(batches.since(datetime.now(UTC) - timedelta(hours=1)))) == 1


@given(st.lists(st.text(max_size=60), max_size=30), st.integers(1, 5), st.integers(400, 900))
def test_no_batch_is_over_a_limit_and_none_is_left_out(texts: list[str], most: int, size: int) -> None:
    """As the SDK would send them, and as few batches as there can be in that order."""
    requests: list[dict[str, Any]] = [{"content": text} for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "MAX_REQUESTS", most)
        patch.setattr(api, "MAX_BYTES", size)
        batches = in_batches(requests)
    assert [place for batch in batches for place in batch] == list(range(len(texts)))
    assert all(batch for batch in batches)
    for batch in batches:
        body = {"requests": [{"custom_id": "x" * 64, "params": requests[place]} for place in batch]}
        sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        assert len(batch) <= most
        assert len(sent) <= size or len(batch) == 1


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "{}", '{"custom_id": "a"}', '{"custom_id": "a", "result": {"type": "succeeded", "message": {}}}'],
)
def test_what_is_no_result_is_said_to_be_none(line: str) -> None:
    with pytest.raises(ValueError, match="a line is not a result"):
        read_results(line)
