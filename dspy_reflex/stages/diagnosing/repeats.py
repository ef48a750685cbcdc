"""Failures that repeat each other: asked about once, and answered alike."""

from __future__ import annotations

import hashlib

from dspy_reflex.mechanism.signature import repeat_of
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.failure import Failure
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.untrusted import quoted_in


def question_of(failure: Failure) -> str:
    """32 hex digits of what a program is asked about a failure, apart from numbers, ids, days, addresses and paths."""
    told = "\n".join(f"{name}: {text}" for name, text in cause_inputs(failure.model_dump()).items())
    return hashlib.sha256(repeat_of(told).encode(errors="surrogatepass")).hexdigest()[:32]


def as_repeat(said: Diagnosis, failure: Failure) -> Diagnosis:
    """What was said of one failure, said of another that repeats it.

    Quotes that do not occur in it are dropped. The argument stays with the first, whose numbers and names it may hold.
    """
    shown = "\n".join(cause_inputs(failure.model_dump()).values())
    return said.model_copy(
        update={
            "failure_id": failure.id,
            "evidence": tuple(quote for quote in said.evidence if quoted_in(quote, shown)),
            "reasoning": f"As {said.failure_id}, from which it differs in no more than numbers, ids, days, addresses or paths.",
        }
    )
