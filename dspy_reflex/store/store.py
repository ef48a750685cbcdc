"""A store: where it is, and transactions on it. What is read and written in them is the other modules' business."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from dspy_reflex.errors import ReflexError, StoreError
from dspy_reflex.store.engine import engine_for, shown
from dspy_reflex.store.migrate import migrate
from dspy_reflex.store.text import half_in

SHOWN_CHARS = 80
"""How much of a text is shown that cannot be stored or looked for."""


class Store:
    """Outcomes and what became of them. Safe to use from several threads and processes."""

    def __init__(self, url: str) -> None:
        """Open the store at a URL such as `sqlite:////home/me/.dspy-reflex/store.db`, made or brought up to date if need be.

        Raises:
            StoreError: It cannot be opened, or a newer version of this package made it.
        """
        self.where = shown(url)
        self._engine = engine_for(url)
        self._writing = self._engine.execution_options(writes=True)
        try:
            with self._translated():
                migrate(self._engine)
        except StoreError:
            self.close()
            raise

    @contextmanager
    def read(self) -> Generator[Connection]:
        """One consistent view."""
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """One transaction: all of it or nothing."""
        with self._translated(), self._writing.begin() as connection:
            yield connection

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """For migrations and benchmarks."""
        return self._engine

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            text = str(error.object)
            raise StoreError(f"{text[:SHOWN_CHARS]!r}: {half_in(text) or error.reason}") from error
        except SQLAlchemyError as error:
            if isinstance(cause := getattr(error, "orig", None), ReflexError):
                raise cause from None
            detail = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise StoreError(
                f"{self.where}: {detail}; check REFLEX_HOME or REFLEX_DATABASE_URL, and disk space"
            ) from error
