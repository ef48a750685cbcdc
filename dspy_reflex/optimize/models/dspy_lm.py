"""The models of a compile, as DSPy knows them. The one file that touches DSPy's wire layer.

DSPy's own engines are not used: what a program is compiled with is then the client that it will run with, with the same
requests, retries and limits, and one journal serves both.
"""

from __future__ import annotations

from typing import Any

import dspy
from dspy.lm15 import Message, Response, TextPart, Usage, response_to_events

from dspy_reflex.errors import ReflexError
from dspy_reflex.optimize.models.journal import Journal
from dspy_reflex.optimize.models.journaled import JournaledModel, journaled
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.runtime.lm import offline
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES
from dspy_reflex.runtime.lm.model import Completion, Sampling


class Engine:
    """A journaled model as a DSPy engine. What goes wrong leaves it as `Stop`, so that no optimizer scores it."""

    supported_params = frozenset({"temperature", "max_tokens", "seed"})

    def __init__(self, model: JournaledModel) -> None:
        """Answer requests with `model`."""
        self.model = model

    def complete(self, request: Any) -> Response:
        """Answer one request."""
        sampling = Sampling(request.config.temperature, request.config.seed)
        try:
            return _response(self.model.name, self.model.complete(_messages(request), sampling))
        except ReflexError as error:
            raise Stop(error) from None

    def stream(self, request: Any) -> Any:
        """Answer one request as a stream of one event."""
        return response_to_events(self.complete(request))

    def close(self) -> None:
        """Nothing to close."""


class AsyncEngine(Engine):
    """The same for `acall`."""

    async def complete(self, request: Any) -> Response:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer one request."""
        return super().complete(request)

    async def aclose(self) -> None:
        """Nothing to close."""


class ReflexLM(dspy.LM):
    """A DSPy model over a journaled one. DSPy asks for variety by rollout id or `n`; here both become seeds."""

    def __init__(self, model: JournaledModel, **options: Any) -> None:
        """Make one; `seed` in `options` is passed on by DSPy's own `copy`. DSPy's cache stays off: the journal is it."""
        options.pop("model", None)
        engines = {"engine": Engine(model), "async_engine": AsyncEngine(model)}
        super().__init__(model.name, cache=False, num_retries=0, **engines, **options)

    def update_history(self, entry: dict[str, Any]) -> None:
        """Called by DSPy once a call; its history would keep every prompt in memory."""

    def copy(self, **options: Any) -> Any:
        """A copy whose rollout id is its seed."""
        if options.get("rollout_id") is not None:
            options.setdefault("seed", options["rollout_id"])
        return super().copy(**options)

    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask once for each of `n` answers, each with a seed of its own."""
        count = options.pop("n", None) or 1
        if options.get("rollout_id") is not None:
            options.setdefault("seed", options["rollout_id"])
        if count == 1:
            return super().__call__(prompt, messages=messages, **options)
        first = options.pop("seed", None) or self.kwargs.get("seed") or 0
        call = super().__call__
        return [out for i in range(count) for out in call(prompt, messages=messages, seed=first + i, **options)]


class OfflineLM(ReflexLM):
    """The offline learner as a DSPy model, for scripts of one's own."""

    def __init__(self, **options: Any) -> None:
        """Make one with a journal and a bill of its own."""
        super().__init__(journaled(offline.MODEL, "task", Journal(), Ledger()), **options)


def model_name(name: str) -> str:
    """The name that artefacts carry: `offline` is spelt out with its version."""
    return offline.MODEL if name in OFFLINE_NAMES else name


def _messages(request: Any) -> list[dict[str, str]]:
    """The chat that a program's light runtime would send."""
    system = request.system if isinstance(request.system, str) else "".join(p.text for p in request.system or ())
    chat = [{"role": message.role, "content": message.text or ""} for message in request.messages]
    return [{"role": "system", "content": system}, *chat] if system else chat


def _response(name: str, answer: Completion) -> Response:
    usage = Usage(input_tokens=answer.input_tokens, output_tokens=answer.output_tokens)
    text = "" if answer.finish in ("refusal", "too_long") else answer.text
    return Response(id=None, model=name, message=Message.assistant([TextPart(text)]), finish_reason="stop", usage=usage)
