"""Where batches are: one file, replaced as a whole, and beside it the results that were fetched."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from dspy_reflex.errors import RunError
from dspy_reflex.files import write_atomic
from dspy_reflex.runtime.lm.batches.api import Unanswered, read_results
from dspy_reflex.runtime.lm.model import Completion

FORMAT = "dspy-reflex/batches"


@dataclass(frozen=True, slots=True)
class Batch:
    """A submission: planned, sent, or known to the provider."""

    places: tuple[int, ...]
    """The chats in it."""
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    """What the ids of its requests begin with, and no other batch's."""
    sent_at: str = ""
    """When it was first sent, in UTC; from then on the provider may have it."""
    id: str = ""
    """The provider's name for it, once that is known."""

    def custom_id(self, place: int) -> str:
        """The id of a chat's request."""
        return f"{self.key}-{place}"


class State:
    """The file. Used as a context, it keeps other processes out."""

    def __init__(self, path: Path, digest: str) -> None:
        """Name the file, and what its batches must be of."""
        self._path, self._digest = path, digest
        self.batches: list[Batch] = []

    def __enter__(self) -> Self:
        """Lock the file and read it.

        Raises:
            RunError: Another process has it, it is damaged, or it is of other chats.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = sqlite3.connect(self._path.with_suffix(".lock"), timeout=0, isolation_level=None)
        try:
            self._lock.execute("BEGIN EXCLUSIVE")  # a lock that goes with its process, on every system
            self.batches = self._read() if self._path.exists() else []
        except sqlite3.Error as error:
            self._lock.close()
            raise RunError(f"{self._path}: in use by another process ({error}); let it finish") from None
        except RunError:
            self._lock.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Let others in."""
        self._lock.close()

    def plan(self, batches: Iterable[Batch]) -> None:
        """Note batches that are about to be sent."""
        self.batches.extend(batches)
        self._write()

    def put(self, number: int, batch: Batch) -> None:
        """Note what became of a batch."""
        self.batches[number] = batch
        self._write()

    def keep(self, batch: Batch, results: str) -> None:
        """Keep the results of a batch."""
        write_atomic(self._file(batch), results.encode())

    def has(self, batch: Batch) -> bool:
        """Whether the results of a batch are here."""
        return self._file(batch).exists()

    def results(self, batch: Batch) -> dict[int, Completion | Unanswered]:
        """What became of each chat of a batch whose results are here.

        Raises:
            RunError: They are damaged.
        """
        path = self._file(batch)
        try:
            found = read_results(path.read_text(encoding="utf-8"))
            return {place: found[batch.custom_id(place)] for place in batch.places}
        except (OSError, ValueError, LookupError) as error:
            raise RunError(f"{path}: damaged ({error!r}); remove it, and the results are fetched again") from None

    def _file(self, batch: Batch) -> Path:
        return self._path.with_name(f"{batch.key}.jsonl")

    def _write(self) -> None:
        state = {"format": FORMAT, "digest": self._digest, "batches": [asdict(each) for each in self.batches]}
        write_atomic(self._path, json.dumps(state).encode())

    def _read(self) -> list[Batch]:
        try:
            state: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
            batches = [Batch(tuple(each.pop("places")), **each) for each in state["batches"]]
            same = state["format"] == FORMAT and state["digest"] == self._digest
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise RunError(
                f"{self._path}: damaged ({error!r}); its batches can be looked up in the provider's console"
            ) from None
        if not same:
            raise RunError(f"{self._path}: batches of other questions, or of another model; name another folder")
        return batches
