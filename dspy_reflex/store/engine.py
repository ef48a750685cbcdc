"""One engine for a database URL: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from dspy_reflex.errors import MissingExtraError, StoreError

BUSY_S = 30.0
"""How long a write waits for another process's."""


def engine_for(url: str) -> Engine:
    """An engine that begins every SQLite write transaction as one.

    Raises:
        StoreError: The URL is none, or of another kind of database.
        MissingExtraError: It is PostgreSQL's and its driver is not installed.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed)
    try:
        return create_engine(parsed, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise MissingExtraError("a PostgreSQL store", "postgresql") from error


def shown(url: str) -> str:
    """The URL for people, without its password."""
    return _parsed(url).render_as_string(hide_password=True)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise StoreError("REFLEX_DATABASE_URL: not a database URL; write sqlite:///FILE or postgresql://…") from error
    if kind not in ("sqlite", "postgresql"):
        raise StoreError(f"REFLEX_DATABASE_URL: {kind} is not supported; write sqlite:///FILE or postgresql://…")
    return parsed.set(drivername="postgresql+psycopg") if kind == "postgresql" else parsed


def _sqlite(url: URL) -> Engine:
    if url.database and url.database != ":memory:":
        _make_folder(Path(url.database).parent)
    # autocommit at the driver: the transactions are those that `_begin` begins, and none that the driver guesses.
    engine = create_engine(url, connect_args={"timeout": BUSY_S, "isolation_level": None})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made: {error.strerror}; choose another with REFLEX_HOME") from error


def _prepare(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Any) -> None:
    """A write transaction takes its lock at once: upgrading a read later fails without waiting (SQLITE_BUSY_SNAPSHOT)."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
