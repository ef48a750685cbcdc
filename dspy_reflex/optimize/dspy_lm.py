"""The models a compile runs on, as DSPy knows them. The one file that touches DSPy's wire layer.

An outage must never be scored, but DSPy's optimizers catch every `Exception` of an evaluation and count it as 0. So it
leaves a model as `NoAnswer`, which they let pass, and the driver tells its error.
"""

from __future__ import annotations

import os
from typing import Any

import dspy
from dspy.lm15 import Message, Response, TextPart, Usage, response_to_events
from dspy.utils.exceptions import (
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMInvalidRequestError,
    LMUnsupportedModelError,
)

from dspy_reflex.errors import ModelError, ModelNotConfiguredError, ModelUnavailableError
from dspy_reflex.optimize.ledger import Ledger
from dspy_reflex.runtime.lm import offline
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES, endpoint

TIMEOUT_S = 120.0
RETRIES = 5
SAID_CHARS = 300
"""How much of a provider's own words is repeated."""


class NoAnswer(BaseException):
    """A model could not be asked. Not an `Exception`, so that no optimizer scores it."""

    def __init__(self, error: ModelError) -> None:
        """Carry what is to be told."""
        super().__init__(str(error))
        self.error = error


class CountedLM(dspy.LM):
    """A DSPy model that reports each call to a ledger and never lets an outage be scored."""

    def __init__(self, model: str, role: str, ledger: Ledger, **options: Any) -> None:
        """Make a model; DSPy's own cache stays off, so that what is counted is what was sent."""
        super().__init__(model, cache=False, **options)
        self.role = role
        self.ledger = ledger

    def update_history(self, entry: dict[str, Any]) -> None:
        """Called by DSPy once a call; the history itself would keep every prompt in memory."""
        self.ledger.add(self.role, entry.get("usage") or {})

    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask the model, with outages made unscorable."""
        self.ledger.check()
        try:
            return super().__call__(prompt, messages=messages, **options)
        except LMError as error:
            raise self._no_answer(error) from None

    async def acall(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask the model without blocking, with outages made unscorable."""
        self.ledger.check()
        try:
            return await super().acall(prompt, messages=messages, **options)
        except LMError as error:
            raise self._no_answer(error) from None

    def _no_answer(self, error: LMError) -> NoAnswer:
        """The end of the compile, in one sentence without the key; other threads ask nobody any more."""
        key = str(self.kwargs.get("api_key") or "")
        said = " ".join(str(error).split())[:SAID_CHARS]
        said = said.replace(key, "[key]") if key else said
        found = NoAnswer(_model_error(self.model, error, said))
        self.ledger.stop(found)
        return found


class OfflineEngine:
    """The offline learner as a DSPy engine."""

    supported_params = frozenset({"temperature", "max_tokens", "seed"})

    def complete(self, request: Any) -> Response:
        """Answer one request."""
        system = request.system if isinstance(request.system, str) else "".join(p.text for p in request.system or ())
        messages = [{"role": "system", "content": system}]
        messages += [{"role": message.role, "content": message.text or ""} for message in request.messages]
        text = offline.answer(messages, request.config.seed or 0)
        asked = sum(len(message["content"]) for message in messages) // offline.CHARS_PER_TOKEN
        usage = Usage(input_tokens=asked, output_tokens=len(text) // offline.CHARS_PER_TOKEN)
        answer = Message.assistant([TextPart(text)])
        return Response(id=None, model=offline.MODEL, message=answer, finish_reason="stop", usage=usage)

    def stream(self, request: Any) -> Any:
        """Answer one request as a stream of one event."""
        return response_to_events(self.complete(request))

    def close(self) -> None:
        """Nothing to close."""


class OfflineLM(CountedLM):
    """The offline learner as a DSPy model. DSPy asks for variety by rollout id or `n`; here both become seeds."""

    def __init__(self, role: str = "task", ledger: Ledger | None = None, **options: Any) -> None:
        """Make one; `seed` in `options` is passed on by DSPy's own `copy`."""
        options.pop("model", None)
        super().__init__(offline.MODEL, role, ledger or Ledger(), engine=OfflineEngine(), **options)

    def copy(self, **options: Any) -> Any:
        """A copy whose rollout id is its seed."""
        if options.get("rollout_id") is not None:
            options.setdefault("seed", options["rollout_id"])
        return super().copy(**options)

    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask once for each of `n` answers, each with a seed of its own."""
        count = options.pop("n", None) or 1
        if count == 1:
            return super().__call__(prompt, messages=messages, **options)
        first = options.pop("seed", None) or self.kwargs.get("seed") or 0
        call = super().__call__
        return [out for i in range(count) for out in call(prompt, messages=messages, seed=first + i, **options)]


def connect_lm(name: str, role: str, ledger: Ledger) -> CountedLM:
    """The model of a name, for a role in the compile.

    Raises:
        ModelNotConfiguredError: Its provider, key or address is not known.
    """
    if name in OFFLINE_NAMES:
        return OfflineLM(role, ledger)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")  # or DSPy fetches a price list from the network
    place = endpoint(name)
    connection = {"api_base": place.url, "api_key": place.key or "none", "timeout": TIMEOUT_S, "engine": "lm15"}
    return CountedLM(name, role, ledger, num_retries=RETRIES, **connection)


def _model_error(model: str, error: LMError, said: str) -> ModelError:
    """What an error of DSPy's means for the person at the keyboard."""
    if isinstance(error, LMAuthError | LMBillingError | LMConfigurationError | LMUnsupportedModelError):
        return ModelNotConfiguredError(f"{model}: {said}; check its name, key and account")
    if isinstance(error, LMInvalidRequestError):
        return ModelError(f"{model} does not take the request: {said}; try another model or fewer --max-demos")
    return ModelUnavailableError(f"{model}: {said}; nothing was scored or written, try again later")


def model_name(name: str) -> str:
    """The name that artefacts carry: `offline` is spelt out with its version."""
    return offline.MODEL if name in OFFLINE_NAMES else name
