"""Locks that hold until a transaction ends, so that what it has read is still so when it writes."""

from __future__ import annotations

from sqlalchemy import Connection, text

MIGRATING, FILING = 0x5EF1EC, 0x5EF1ED
"""Keys of PostgreSQL's advisory locks: who changes the tables, and who files proposals."""


def alone(connection: Connection, key: int) -> None:
    """Wait until no other transaction holds this lock, and hold it until the end of this one.

    SQLite's write transactions exclude each other as it is.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
