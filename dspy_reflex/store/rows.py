"""Rows of a table as dictionaries."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row


def told(row: Row[Any]) -> dict[str, Any]:
    """What a row says, by column."""
    return dict(row._mapping)  # pyright: ignore[reportPrivateUsage] - public, for all its name
