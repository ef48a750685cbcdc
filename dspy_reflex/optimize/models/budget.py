"""What a run may cost at most."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from dspy_reflex.errors import ConfigError
from dspy_reflex.runtime.lm.prices import cost_usd


@dataclass(frozen=True)
class Budget:
    """The most that a run may cost, all of its sittings together; None is no limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    """Input and output tokens together."""
    max_usd: float | None = None
    max_time_s: float | None = None
    """Of one sitting: waiting costs nothing."""
    max_errors: int = 0
    """Calls that may be given up after all their attempts, and asked again, before the run stops."""

    @property
    def limits(self) -> dict[str, float]:
        """What there is a limit for."""
        limits = {"calls": self.max_calls, "tokens": self.max_tokens, "usd": self.max_usd, "time": self.max_time_s}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def check(self, models: Iterable[str]) -> None:
        """Say what cannot be held before anything is spent.

        Raises:
            ConfigError: A limit is not above 0, or there is no price to hold against one.
        """
        for name, limit in self.limits.items():
            if not (limit > 0 and math.isfinite(limit)):
                raise ConfigError(f"--max-{name}: {limit} is no limit; give a number above 0")
        unpriced = [model for model in models if cost_usd(model, 0, 0) is None]
        if self.max_usd is not None and unpriced:
            raise ConfigError(
                f"--max-usd: the price of {unpriced[0]} is not known; give one in a file named by REFLEX_PRICES"
            )

    def to_json(self) -> dict[str, Any]:
        """Its limits."""
        return asdict(self)
