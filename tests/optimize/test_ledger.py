"""One bill, however many threads and copies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

from dspy_reflex.optimize.dspy_lm import OfflineLM, model_name
from dspy_reflex.optimize.ledger import Ledger


def test_calls_and_tokens_are_added_by_role() -> None:
    """Both spellings of token counts are known; none at all is zero."""
    ledger = Ledger()
    ledger.add("task", {"prompt_tokens": 3, "completion_tokens": 2})
    ledger.add("task", {"input_tokens": 10, "output_tokens": 1})
    ledger.add("prompt", {})
    assert ledger.to_json() == {
        "prompt": {"calls": 1, "input_tokens": 0, "output_tokens": 0},
        "task": {"calls": 2, "input_tokens": 13, "output_tokens": 3},
    }
    assert ledger.calls == 3


def test_no_call_is_lost_between_threads_and_copies() -> None:
    """DSPy copies its models deeply; what the copies spend is on the same bill."""
    ledger = Ledger()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: deepcopy(ledger).add("task", {"prompt_tokens": 1}), range(2_000)))
    assert ledger.to_json()["task"] == {"calls": 2_000, "input_tokens": 2_000, "output_tokens": 0}


def test_copies_of_a_model_share_its_ledger_and_keep_no_history() -> None:
    """Every prompt in memory would be all of the data set, many times."""
    ledger = Ledger()
    model = OfflineLM("teacher", ledger)
    for each in (model, model.copy(), deepcopy(model), model.copy(rollout_id=3, temperature=1.0)):
        each("hello")
        assert each.history == []
    assert ledger.to_json()["teacher"]["calls"] == 4


def test_offline_has_one_name_in_artefacts() -> None:
    """With its version, because its answers may change with it."""
    assert (model_name("offline"), model_name("offline/1"), model_name("openai/x")) == (
        "offline/1",
        "offline/1",
        "openai/x",
    )
