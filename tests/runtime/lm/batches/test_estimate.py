"""What batches may cost, before they are sent."""

from __future__ import annotations

import pytest

from dspy_reflex.runtime.lm.batches.estimate import estimate
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Message
from tests.runtime.lm.batch_server import batch_server
from tests.runtime.lm.loopback import KEY

CHATS: list[list[Message]] = [[{"role": "user", "content": "x" * length}] for length in (100, 400, 300)]


def test_it_is_the_count_of_the_longest_chat_for_all_of_them() -> None:
    """The server counts a token a character; every prompt is written to the cache, every answer as long as may be."""
    with batch_server() as server:
        model = Claude("anthropic/claude-opus-5-5", url=server.url, key=KEY, max_tokens=50)
        found = estimate(model, CHATS)
    assert server.verbs == ["count"]
    assert (found.input_tokens, found.output_tokens) == (800, 150)
    assert found.usd == pytest.approx((800 * 5.0 + 150 * 20.0) / 2 / 1e6)


def test_without_a_price_there_is_no_sum() -> None:
    with batch_server() as server:
        assert estimate(Claude("anthropic/claude-test", url=server.url, key=KEY), CHATS).usd is None
