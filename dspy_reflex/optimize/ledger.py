"""How many calls and tokens a compile used, by the role of the model: task, prompt or teacher."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any


class Ledger:
    """Counts every call. Safe with threads; copies of a model share their ledger."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}
        self._stopped: BaseException | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        """DSPy copies its models freely; what they spend is one bill."""
        return self

    def add(self, role: str, usage: Mapping[str, Any]) -> None:
        """Count one call with what the provider said it used."""
        found = Counter(
            calls=1,
            input_tokens=int(usage.get("prompt_tokens") or usage.get("input_tokens") or 0),
            output_tokens=int(usage.get("completion_tokens") or usage.get("output_tokens") or 0),
        )
        with self._lock:
            self._counts.setdefault(role, Counter()).update(found)

    def stop(self, why: BaseException) -> None:
        """No model of this bill may be asked from now on."""
        self._stopped = self._stopped or why

    def check(self) -> None:
        """Raise why models may not be asked any more, if so."""
        if self._stopped is not None:
            raise self._stopped

    @property
    def calls(self) -> int:
        """Calls of all roles."""
        with self._lock:
            return sum(counts["calls"] for counts in self._counts.values())

    def to_json(self) -> dict[str, dict[str, int]]:
        """Calls, input tokens and output tokens of each role."""
        with self._lock:
            return {role: dict(counts) for role, counts in sorted(self._counts.items())}
