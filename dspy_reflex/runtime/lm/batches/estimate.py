"""What chats will cost in batches, before they are sent: afterwards nothing can stop them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.lm.prices import cost_usd


class Estimate(NamedTuple):
    """The most that chats will cost."""

    input_tokens: int
    """From the provider's count for the longest chat and the length of the others."""
    output_tokens: int
    """If every answer is as long as it may be."""
    usd: float | None
    """If, besides, no prompt is found in the provider's cache. None if the model's price is not known."""


def estimate(model: Claude, chats: Sequence[list[Message]]) -> Estimate:
    """Estimate what chats, at least one, will cost in batches. Raises what `Claude.complete` raises."""
    longest = max(chats, key=_chars)
    tokens = ceil(model.count_tokens(longest) * sum(map(_chars, chats)) / max(1, _chars(longest)))
    answers = model.max_tokens * len(chats)
    return Estimate(tokens, answers, cost_usd(model.name, tokens, answers, cache_write_tokens=tokens, batch=True))


def _chars(chat: list[Message]) -> int:
    return sum(len(message["content"]) for message in chat)
