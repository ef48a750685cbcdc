"""What the light runtime asks of a model: chat messages in, one text out, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Message = dict[str, str]
"""A chat message: `{"role": "system" | "user" | "assistant", "content": text}`."""

Finish = Literal["stop", "length", "refusal"]
"""Why a model stopped: it was done, it ran out of tokens, or it (or its provider's filter) declined."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model."""

    text: str
    finish: Finish = "stop"
    input_tokens: int = 0
    """As the provider counted them; 0 when it did not say."""
    output_tokens: int = 0
    """As the provider counted them; 0 when it did not say."""


class LanguageModel(Protocol):
    """A model, and whatever is needed to reach it.

    Both calls retry what may pass (429, 5xx, 529, time-outs, broken connections) and raise
    `ModelUnavailableError` when it does not. They are safe to call from several threads.
    """

    @property
    def name(self) -> str:
        """The name it was asked for, as `anthropic/claude-…` or `offline/1`."""
        ...

    def complete(self, messages: list[Message]) -> Completion:
        """Answer one chat."""
        ...

    async def acomplete(self, messages: list[Message]) -> Completion:
        """Answer one chat without blocking the event loop."""
        ...
