"""Our models as DSPy knows them: one bill, a seed for each variant, and no error that an optimizer could score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from copy import deepcopy
from typing import Any

import pytest

from dspy_reflex.errors import BudgetError, ModelNotConfiguredError, ModelUnavailableError
from dspy_reflex.optimize.models import journaled as client
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.dspy_lm import OfflineLM, ReflexLM, model_name
from dspy_reflex.optimize.models.journal import Journal
from dspy_reflex.optimize.models.journaled import journaled
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.publish import adapter, publish
from dspy_reflex.runtime.lm.connect import PROVIDERS, endpoint
from dspy_reflex.runtime.render import render
from tests.optimize.thinking import WEAK, Thinking, pointed_at, wise
from tests.runtime.lm.loopback import KEY, answer, cut, error, loopback, refusal

dspy: Any = pytest.importorskip("dspy")

NAMES = ["openai/gpt-4o-mini", "anthropic/claude-opus-4-5", "ollama_chat/llama3.2", "hosted_vllm/org/model"]
Serve = Callable[..., Thinking]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


def model(ledger: Ledger) -> ReflexLM:
    """A model behind the wire."""
    return ReflexLM(journaled(WEAK, "task", Journal(), ledger))


def test_copies_of_a_model_share_its_bill_and_its_journal_and_keep_no_history(serve: Serve) -> None:
    """Every prompt in memory would be all of the data set, many times."""
    server, ledger = serve(lambda _: answer("hi")), Ledger()
    first = model(ledger)
    for each in (first, first.copy(), deepcopy(first), first.copy(rollout_id=3, temperature=1.0)):
        assert each("hello") == ["hi"]
        assert each.history == []
    assert len(server.requests) == ledger.calls == 2  # the last one is another question


def test_a_variant_is_a_seed_of_its_own(serve: Serve) -> None:
    """DSPy asks for `n` answers, or by rollout id; the same again is asked of nobody."""
    server = serve(lambda request: answer(str(request.body.get("seed"))))
    asked = model(Ledger())
    assert asked("hello", n=3) == ["0", "1", "2"]
    assert asked("hello", rollout_id=7, temperature=1.0) == asked.copy(rollout_id=7, temperature=1.0)("hello") == ["7"]
    assert asked("hello", n=3) == ["0", "1", "2"]
    assert [(request.body.get("seed"), request.body["temperature"]) for request in server.requests] == [
        (0, 0), (1, 0), (2, 0), (7, 1.0),
    ]  # fmt: skip


def test_a_plain_question_is_the_one_that_the_light_runtime_sends(serve: Serve) -> None:
    """So what was found while searching is not paid for again while measuring."""
    server, journal, ledger = serve(wise), Journal(), Ledger()
    inputs = {"task": "Add 1 and 1", "expected_outcome": "2", "actual_outcome": "3 \u2014 «done»", "context": ""}
    module = RootCauseClassifier()
    with dspy.context(lm=ReflexLM(journaled(WEAK, "task", journal, ledger)), adapter=adapter()):
        module(**inputs)
    journaled(WEAK, "measure", journal, ledger).complete(render(publish(module), inputs))
    assert (len(server.requests), ledger.calls, ledger.replayed) == (1, 1, 0)


def test_a_model_can_be_awaited() -> None:
    """As the modules can."""
    assert asyncio.run(OfflineLM().acall("hello")) == OfflineLM()("hello")


@pytest.mark.parametrize(("reply", "text"), [(refusal(), ""), (cut("half an"), "half an"), (answer(""), "")])
def test_what_is_no_good_answer_is_a_text_all_the_same(reply: Any, text: str, serve: Serve) -> None:
    """An optimizer scores it as a miss; a refusal's words are not taken for an answer."""
    serve(lambda _: reply)
    assert model(Ledger())("hello") == [text]


@pytest.mark.parametrize(
    ("status", "kind"), [(503, ModelUnavailableError), (529, ModelUnavailableError), (401, ModelNotConfiguredError)]
)
def test_what_goes_wrong_is_nothing_that_an_optimizer_could_score(
    status: int, kind: type[Exception], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No `Exception`, for DSPy would go on; and nobody is asked after it."""
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    server = serve(lambda _: error(status, f"bad key {KEY}", retry_after="0.01"))
    asked = model(Ledger())
    for question in ("hello", "again"):
        with pytest.raises(Stop) as caught:
            asked(question)
        assert isinstance(caught.value.error, kind)
        assert KEY not in str(caught.value)
    assert not issubclass(Stop, Exception)
    assert len(server.requests) == (1 if status == 401 else 2)


def test_a_spent_budget_is_no_score_either(serve: Serve) -> None:
    """What is in the journal is still answered."""
    server, asked = serve(lambda _: answer("hi")), model(Ledger(Budget(max_calls=1)))
    asked("hello")
    with pytest.raises(Stop) as caught:
        asked("again")
    assert isinstance(caught.value.error, BudgetError)
    assert asked("hello") == ["hi"]
    assert len(server.requests) == 1


def test_offline_has_one_name_in_artefacts() -> None:
    """With its version, because its answers may change with it."""
    names = [model_name(name) for name in ("offline", "offline/1", "openai/x")]
    assert names == ["offline/1", "offline/1", "openai/x"]


@pytest.mark.parametrize("name", NAMES)
def test_our_endpoint_is_what_dspys_own_models_want(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script of one's own reaches the same server with the same settings."""
    provider = PROVIDERS[name.partition("/")[0]]
    with loopback() as server:
        monkeypatch.setenv(provider.url_variables[0], server.url)
        monkeypatch.setenv(provider.key_variable, KEY)
        where = endpoint(name)
        theirs = dspy.LM(name, api_base=where.url, api_key=where.key, engine="lm15", cache=False, num_retries=0)
        assert theirs("hello") == ["hello"]
    assert len(server.requests) == 1
