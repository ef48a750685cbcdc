"""What the light runtime asks of a model: chat messages in, one text out, and what it cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Protocol

Message = dict[str, str]
"""A chat message: `{"role": "system" | "user" | "assistant", "content": text}`."""

Finish = Literal["stop", "length", "refusal", "too_long"]
"""Why a model stopped: it was done, it ran out of tokens, it (or its provider's filter) declined, or the question was
longer than it can read, which says nothing of the next one."""
TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|prompt is too long|context window",
    re.IGNORECASE,
)
"""How OpenAI, llama.cpp, vLLM, Anthropic and Ollama say with status 400 that a question is too long."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model."""

    text: str
    finish: Finish = "stop"
    input_tokens: int = 0
    """As the provider counted them; 0 when it did not say."""
    output_tokens: int = 0
    """As the provider counted them; 0 when it did not say."""
    cache_read_tokens: int = 0
    """Those of the input tokens that the provider read from its prompt cache, at a lower price."""
    cache_write_tokens: int = 0
    """Those of the input tokens that it wrote there, at a higher price."""
    batch: bool = False
    """Whether it was asked in a batch, at half the price."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn, where a compile wants something else than one plain answer."""

    temperature: float | None = None
    """None: the client's own, which is 0 wherever the server takes one."""
    seed: int | None = None
    """Told to servers that take one; elsewhere it only keeps two answers to one question apart."""


PLAIN = Sampling()
"""The one plain answer that a program at run time asks for."""


class LanguageModel(Protocol):
    """A model, and whatever is needed to reach it.

    Both calls retry what may pass (429, 5xx, 529, time-outs, broken connections) and raise
    `ModelUnavailableError` when it does not. They are safe to call from several threads.
    """

    @property
    def name(self) -> str:
        """The name it was asked for, as `anthropic/claude-…` or `offline/1`."""
        ...

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat."""
        ...

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat without blocking the event loop."""
        ...
