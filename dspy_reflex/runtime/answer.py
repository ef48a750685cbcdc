"""One question to one program: render, ask, parse, and say what it cost. Knows no records, only texts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dspy_reflex.errors import AnswerError
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.lm.model import Completion, LanguageModel
from dspy_reflex.runtime.parse import parse
from dspy_reflex.runtime.render import render

Problem = Literal["", "refusal", "unparsable"]
"""Why there are no fields: the model declined, or its answer was not in the form asked for."""


_DECLINED = {"refusal": "the model declined", "too_long": "the question is longer than the model can read"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. A refusal or an unparsable answer is data, not an exception; an outage is an exception."""

    fields: Mapping[str, Any] | None
    """The output fields; None if there was a problem."""
    problem: Problem
    detail: str
    """What was wrong, in words; empty if nothing."""
    input_tokens: int
    output_tokens: int
    seconds: float
    """Wall time of the call, in seconds; 0 for an answer from a batch."""
    cache_read_tokens: int = 0
    """Those of the input tokens that came from the provider's prompt cache."""
    cache_write_tokens: int = 0
    """Those of the input tokens that went there."""


def ask(artifact: Artifact, model: LanguageModel, values: Mapping[str, str]) -> Answer:
    """Run one program on one input.

    Raises:
        ModelError: The model cannot be used or reached.
        RenderError: An input field is missing.
    """
    started = time.perf_counter()
    completion = model.complete(render(artifact, values))
    return read_answer(artifact, completion, time.perf_counter() - started)


async def aask(artifact: Artifact, model: LanguageModel, values: Mapping[str, str]) -> Answer:
    """Like `ask`, without blocking the event loop."""
    started = time.perf_counter()
    completion = await model.acomplete(render(artifact, values))
    return read_answer(artifact, completion, time.perf_counter() - started)


def read_answer(artifact: Artifact, completion: Completion, seconds: float = 0.0) -> Answer:
    """What a model told, read as one program's answer."""
    tokens = (completion.input_tokens, completion.output_tokens)
    cost = (*tokens, seconds, completion.cache_read_tokens, completion.cache_write_tokens)
    if completion.finish in _DECLINED:
        return Answer(None, "refusal", _DECLINED[completion.finish], *cost)
    try:
        return Answer(parse(artifact.data["outputs"], _whole(completion.text)), "", "", *cost)
    except AnswerError as error:
        return Answer(None, "unparsable", str(error), *cost)


def _whole(text: str) -> str:
    """The text with U+FFFD for half characters, which JSON can escape and nothing can store or send."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
