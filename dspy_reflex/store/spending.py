"""What models were paid, by day in UTC."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from dspy_reflex.clock import day_of, now
from dspy_reflex.store.schema import spending
from dspy_reflex.store.upsert import add_up


def spend(connection: Connection, model: str, *, calls: int, input_tokens: int, output_tokens: int, usd: float) -> None:
    """Add what was spent today."""
    used = {"calls": calls, "input_tokens": input_tokens, "output_tokens": output_tokens, "usd": usd}
    add_up(connection, spending, [{"day": day_of(now()), "model": model, **used}])


def spent_today(connection: Connection) -> float:
    """USD since midnight UTC."""
    today = spending.c.day == day_of(now())
    return float(connection.scalar(select(func.coalesce(func.sum(spending.c.usd), 0.0)).where(today)) or 0.0)
