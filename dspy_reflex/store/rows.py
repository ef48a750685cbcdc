"""Rows of a table as dictionaries."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row


def told(row: Row[Any]) -> dict[str, Any]:
    """What a row says, by column."""
    fields = row._fields  # pyright: ignore[reportPrivateUsage] - public, for all its name
    return dict(zip(fields, row, strict=True))
