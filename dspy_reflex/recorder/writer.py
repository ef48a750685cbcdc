"""What a file that payloads are written to can do, mapped or not."""

from __future__ import annotations

from typing import Literal, Protocol

Kind = Literal["mapped", "append", "none"]
"""How events are written: copied into a mapped file, appended to a plain one, or not at all."""
FILE_BYTES = 8 * 1024 * 1024
"""How large a file of the spool becomes before the next one is begun."""


class FullError(Exception):
    """A file has no room for the payload; nothing of it was written."""


class Writer(Protocol):
    """One file of the spool, made by and locked for this process."""

    @property
    def kind(self) -> Kind:
        """How it writes."""
        ...

    @property
    def is_half_full(self) -> bool:
        """Whether it is time to think of the next one."""
        ...

    def write(self, payload: bytes) -> None:
        """Write one payload; on return it survives the death of the process.

        Raises:
            FullError: There is no room for it.
            OSError: It could not be written.
        """
        ...

    def flush(self) -> None:
        """Bring to the disk what was written; on return it survives a power cut.

        Raises:
            OSError: The disk did not take it.
        """
        ...

    def close(self) -> None:
        """Give the file to its readers; one in which nothing was written is removed."""
        ...

    def forget(self) -> None:
        """Let go of a file that is another process's: for a child after a fork."""
        ...
