"""Insert or add: the one statement that SQLite and PostgreSQL spell alike and SQLAlchemy does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose key is not there yet."""
    if rows:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), [*map(dict, rows)])


def insert_found(connection: Connection, table: Table, column: str, found: Select[Any]) -> None:
    """Insert a row for each value found whose key is not there yet."""
    connection.execute(_insert(connection, table).from_select([column], found).on_conflict_do_nothing())


def put(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows, or replace what stands under their key."""
    _upsert(connection, table, rows, add=False)


def add_up(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows, or add their numbers to those under their key."""
    _upsert(connection, table, rows, add=True)


def _upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, add: bool) -> None:
    if not rows:
        return
    insert = _insert(connection, table)
    keys = [column.name for column in table.primary_key]
    others = [name for name in rows[0] if name not in keys]
    new = {name: table.c[name] + insert.excluded[name] if add else insert.excluded[name] for name in others}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=new), [*map(dict, rows)])


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
