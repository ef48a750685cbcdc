"""What may be spent on models today, and what was."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from dspy_reflex.config import Settings
from dspy_reflex.runtime.lm.prices import cost_usd
from dspy_reflex.stages.asking.batch import Batch, Meter
from dspy_reflex.store import spending
from dspy_reflex.store.store import Store


def meter_of_today(store: Store, settings: Settings, model: str, max_usd: float | None) -> Meter:
    """A meter that stops at `max_usd`, or earlier where less of the day's allowance is left; never for a free model.

    Raises:
        ConfigError: There is a limit, and the model's price is not known.
    """
    if cost_usd(model, 1, 1) == 0:
        return Meter(model, None)
    limits = [] if max_usd is None else [max_usd]
    if settings.max_usd_per_day is not None:
        with store.read() as connection:
            limits.append(max(0.0, settings.max_usd_per_day - spending.spent_today(connection)))
    return Meter(model, min(limits, default=None))


def spend(connection: Connection, model: str, batch: Batch[Any]) -> None:
    """Put what a batch used into the store; a model without a known price counts as free there."""
    if batch.calls:
        used = {"calls": batch.calls, "input_tokens": batch.input_tokens, "output_tokens": batch.output_tokens}
        spending.spend(connection, model, **used, usd=batch.cost_usd or 0.0)
