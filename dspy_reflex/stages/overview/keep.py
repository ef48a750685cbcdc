"""What goes and what is remembered: retention, forgetting by name, and the trail of who did what."""

from __future__ import annotations

from datetime import timedelta

from dspy_reflex.clock import now
from dspy_reflex.errors import ConfigError
from dspy_reflex.records.review import AuditLine
from dspy_reflex.store import audit
from dspy_reflex.store import forget as store_forget
from dspy_reflex.store.store import Store

STORE = "store"
"""Subject of what is done to the store as a whole."""


def prune(store: Store, days: int | None, *, actor: str) -> int:
    """Remove outcomes older than so many days, but for those that a rule was proposed for; counts stay.

    Returns:
        How many went.

    Raises:
        ConfigError: It is not said how many days.
    """
    if days is None:
        raise ConfigError("nothing says how long outcomes are kept; give --days, or set retention_days")
    with store.write() as connection:
        gone = store_forget.prune(connection, now() - timedelta(days=days))
        audit.note(connection, STORE, "prune", actor=actor, reason=f"{gone} outcomes were older than {days} days")
    return gone


def forget(store: Store, failure_id: str, *, actor: str, reason: str) -> None:
    """Take one failure and all that was said of it out of the store for good; it is not taken in again.

    Raises:
        StoreError: There is no such failure.
    """
    with store.write() as connection:
        store_forget.forget(connection, failure_id, actor=actor, reason=reason)


def history(store: Store, subject: str) -> tuple[AuditLine, ...]:
    """Who did what to a proposal, a failure or the store, oldest first."""
    with store.read() as connection:
        return tuple(audit.trail(connection, subject))
