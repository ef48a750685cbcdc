"""The time, in one place."""

from __future__ import annotations

from datetime import UTC, date, datetime

FIRST_DAY = date(1970, 1, 1)


def now() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def day_of(at: datetime) -> int:
    """Whole days since 1970 in UTC."""
    return (at.astimezone(UTC).date() - FIRST_DAY).days
