"""Failures in, diagnoses out, through batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import BudgetError, ConfigError
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.runtime.lm.batches import run
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.offline import OfflineModel
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.asking.batch import Batch
from dspy_reflex.stages.diagnosing.bulk import diagnose_in_batches
from dspy_reflex.stages.diagnosing.diagnose import diagnose
from tests.runtime.lm.batch_server import (
    CANCELED,
    ERRORED,
    EXPIRED,
    INVALID,
    BatchServer,
    asked,
    batch_server,
)
from tests.runtime.lm.loopback import KEY, Reply, answer, error, refusal
from tests.runtime.programs import cause_answer, failure, published

pytest.importorskip("anthropic")
OPUS = "anthropic/claude-opus-5-5"
FAILURES = [failure(f"failure number {number}", id=f"f{number}") for number in range(6)]
ARTIFACT = published()


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_POLL_S", "LONGEST_POLL_S", "LOOK_AFTER_S"):
        monkeypatch.setattr(run, name, 0.001)


def program(server: BatchServer, name: str = OPUS) -> CauseProgram:
    """The program on a model of the server's."""
    return CauseProgram(ARTIFACT, Claude(name, url=server.url, key=KEY, attempts=2))


def thinks(**fates: Reply) -> Any:
    """Answer well, but for failures to which something else happens: `f3=ERRORED`."""

    def think(params: dict[str, Any]) -> Reply:
        number = asked(params).partition("failure number ")[2][0]
        return fates.get(f"f{number}") or answer(cause_answer(), cache_read_input_tokens=1_000)

    return think


def diagnosed(server: BatchServer, folder: Path, **known: Any) -> Batch[Diagnosis]:
    """What comes of all failures."""
    return diagnose_in_batches(program(server), FAILURES, folder=folder, **known)


def test_it_is_what_one_by_one_would_be_at_half_the_price(tmp_path: Path) -> None:
    """The same diagnoses in the same order."""
    with batch_server(thinks(f2=refusal(), f4=answer("Hm."))) as server:
        alone = diagnose(program(server), FAILURES)
        together = diagnosed(server, tmp_path)
    assert together.done == alone.done
    assert (together.answered, together.left, together.stopped) == (alone.answered, 0, "")
    assert (together.calls, together.input_tokens, together.output_tokens) == (6, 4 * 1_011 + 2 * 11, 42)
    assert alone.cost_usd == pytest.approx((66 * 4 + 4_000 * 0.2 + 42 * 20) / 1e6)
    assert together.cost_usd == pytest.approx((alone.cost_usd or 0.0) / 2)
    assert [one.review_reason.partition(":")[0] for one in together.done if not one.root_cause] == [
        "refusal",
        "unparsable",
    ]


def test_what_has_no_answer_is_left_and_said(tmp_path: Path) -> None:
    """In a sentence, by reason, with the provider's words; the others keep their order."""
    with batch_server(thinks(f1=ERRORED, f2=EXPIRED, f3=INVALID, f4=CANCELED)) as server:
        found = diagnosed(server, tmp_path)
    assert [one.failure_id for one in found.done] == ["f0", "f5"]
    assert (found.answered, found.left, found.calls) == ((0, 5), 4, 2)
    assert found.stopped == (
        "1 errored (api_error: Internal server error), 1 expired, 1 invalid (invalid_request_error: prompt is too "
        "long), 1 canceled; the same command asks again, but for the invalid ones"
    )


def test_an_outage_keeps_what_is_here_and_the_next_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is submitted again."""
    monkeypatch.setattr("dspy_reflex.runtime.lm.batches.api.MAX_REQUESTS", 4)
    with batch_server(thinks()) as server:

        def fail_late(what: str) -> None:
            if what == "after results":
                server.faults["results"] = [error(503, retry_after="0")] * 2

        server.watch = fail_late
        first = diagnosed(server, tmp_path)
        server.watch = lambda _: None
        second = diagnosed(server, tmp_path)
    assert ([one.failure_id for one in first.done], first.left) == (["f0", "f1", "f2", "f3"], 2)
    assert "HTTP 503" in first.stopped
    assert first.stopped.endswith("The same command goes on from there.")
    assert ([one.failure_id for one in second.done], second.left) == ([one.id for one in FAILURES], 0)
    assert set(server.submitted.values()) == {1}


def test_ctrl_c_says_what_to_do(tmp_path: Path) -> None:
    def interrupt(told: str) -> None:
        if "processing" in told:
            raise KeyboardInterrupt

    with batch_server(thinks()) as server:
        found = diagnosed(server, tmp_path, tell=interrupt)
        assert (found.done, found.left) == ((), 6)
        assert found.stopped == "interrupted; what was sent goes on, and the same command fetches it."
        assert diagnosed(server, tmp_path).left == 0


def test_the_same_failures_find_their_folder_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name for it; other failures have another one."""
    monkeypatch.chdir(tmp_path)
    told = list[str]()
    with batch_server(thinks()) as server:
        for failures in (FAILURES, FAILURES, FAILURES[:2]):
            diagnose_in_batches(program(server), failures, tell=told.append)
    assert len(server.batches) == 2
    assert len(list((tmp_path / "batches").iterdir())) == 2
    assert told[0].startswith("batches are kept in batches/")


@pytest.mark.parametrize(
    ("max_usd", "sent"),
    [(0.0, False), (0.001, False), (1.0, True)],
)
def test_nothing_is_sent_that_could_cost_more(max_usd: float, sent: bool, tmp_path: Path) -> None:
    """By the provider's own count, and as if every answer were as long as it may be."""
    told = list[str]()
    with batch_server(thinks()) as server:
        if sent:
            assert diagnosed(server, tmp_path, max_usd=max_usd, tell=told.append).left == 0
        else:
            with pytest.raises(BudgetError, match=r"with answers of up to 6,144 could cost .* nothing was sent"):
                diagnosed(server, tmp_path, max_usd=max_usd)
    assert ("create" in server.verbs) is sent
    assert any(line.startswith("at most 0.") for line in told) is sent


def test_what_is_paid_for_needs_no_budget(tmp_path: Path) -> None:
    """A finished run is read with nothing left to spend, and nobody asked."""
    with batch_server(thinks()) as server:
        diagnosed(server, tmp_path)
        server.verbs.clear()
        assert diagnosed(server, tmp_path, max_usd=0.0).left == 0
    assert server.verbs == []


def test_a_budget_needs_a_price(tmp_path: Path) -> None:
    with batch_server(thinks()) as server, pytest.raises(ConfigError, match="is not known"):
        diagnose_in_batches(program(server, "anthropic/claude-test"), FAILURES, folder=tmp_path, max_usd=1.0)
    assert server.verbs == []


def test_a_model_without_batches_is_refused(tmp_path: Path) -> None:
    """Before a folder is made."""
    with pytest.raises(ConfigError, match=r"offline/1 has no batches; leave it out, or use a model of anthropic/…"):
        diagnose_in_batches(CauseProgram(ARTIFACT, OfflineModel()), FAILURES, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
