"""The `offline` model: a deterministic in-context learner. It is not a language model.

It reads the prompt that a language model would get, and answers from what stands there: definitions, cue sheets, rule
books and demos. It keeps nothing between questions, reads no file and knows no label of its own, so compiling changes
its answers through the prompt and through nothing else. Standard library only; no key, no weights, no network.
"""

from __future__ import annotations

from dspy_reflex.runtime.lm.offline.model import CHARS_PER_TOKEN, MODEL, OfflineModel, answer

__all__ = ["CHARS_PER_TOKEN", "MODEL", "OfflineModel", "answer"]
