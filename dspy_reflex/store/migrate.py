"""Bring a store to the shape this version works with. Alembic does it, and is loaded only when there is something to do."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from dspy_reflex.errors import StoreError
from dspy_reflex.store.locks import MIGRATING, alone

HEAD = "0002"
"""The newest revision in `migrations/versions`."""
SCRIPTS = Path(__file__).parent / "migrations"


def migrate(engine: Engine) -> None:
    """Make the tables, or change them to the newest shape; one process does it, others wait.

    Raises:
        StoreError: A newer version of this package has changed the store.
    """
    with engine.connect() as connection:
        if revision(connection) == HEAD:
            return
    with engine.execution_options(writes=True).begin() as connection:
        alone(connection, MIGRATING)
        if revision(connection) != HEAD:
            _upgrade(connection)


def revision(connection: Connection) -> str | None:
    """The revision of a store; None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(f"the store is of a newer version of dspy-reflex ({error}); upgrade the package") from error
