"""DSPy's chat format, with what the questions of a program have in common written once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import dspy

KEPT = 64
"""How many beginnings of questions are kept as they are written."""

_WRITING = threading.Lock()
"""All threads want the same at once when a candidate's turn comes. It is no attribute: DSPy may copy an adapter."""


class Chat(dspy.ChatAdapter):
    """`dspy.ChatAdapter` to the letter. Most of the time that it takes would go into what is the same each time."""

    def __init__(self, **options: Any) -> None:
        """Have written nothing yet."""
        super().__init__(**options)
        self._written: dict[tuple[Any, str], Any] = {}

    def format_system_message(self, signature: Any) -> str:
        """Fields and task."""
        return self._once((signature, signature.instructions), partial(super().format_system_message, signature))

    def format_demos(self, signature: Any, demos: Any) -> list[dict[str, Any]]:
        """The chat that demos are."""
        key = signature, repr([list(demo.items()) for demo in demos])
        messages = self._once(key, partial(super().format_demos, signature, demos))
        return [dict(message) for message in messages]

    def _once(self, key: tuple[Any, str], write: Callable[[], Any]) -> Any:
        with _WRITING:
            if key not in self._written:
                if len(self._written) >= KEPT:
                    self._written.clear()
                self._written[key] = write()
            return self._written[key]


# What a subclass inherits DSPy wraps a second time; callbacks would be told of everything twice.
Chat.format, Chat.parse = dspy.ChatAdapter.format, dspy.ChatAdapter.parse
