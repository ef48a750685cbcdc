"""Records what agents did, at a price that no agent notices, and never at the price of the agent.

`record` raises nothing, waits for no disk and no other process, and makes no system call but once in thousands of
events, when a file is full. What it has returned for survives `kill -9`; a power cut only after `flush`. What could not
be written is counted in `lost`, and the count is written down as soon as anything can be: `{"lost": n, "at": µs}`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from dspy_reflex.ids import new_id
from dspy_reflex.recorder.event import Patterns, Redaction, encode
from dspy_reflex.recorder.outlet import Outlet
from dspy_reflex.recorder.owner import FOLDER
from dspy_reflex.recorder.writer import FullError, Kind

_GIVEN_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
_NEVER = 2**53


class Recorder:
    """One process's way into the spool of a home. Safe with threads, forks, signal handlers and at exit."""

    def __init__(self, home: Path, redaction: Redaction | None = None) -> None:
        """Make the first file, if that can be.

        Args:
            home: Folder that holds the spool; made if it is not there.
            redaction: What takes secrets out; None is this package's own.
        """
        self.lost = 0
        """Events of this process that could not be written."""
        self.why = ""
        """Why the last of them could not."""
        self._untold = 0
        self._redaction = redaction or Patterns()
        self._outlet = Outlet(home / FOLDER)

    @property
    def kind(self) -> Kind:
        """How events are written at present."""
        return self._outlet.kind

    @property
    def fallback(self) -> str:
        """Why they are not copied into a mapped file; empty if they are."""
        return self._outlet.fallback

    def record(self, event: Mapping[str, Any]) -> str:
        """Write down one outcome.

        Args:
            event: The keys of `dspy_reflex.recorder.event`, all but `agent_id` and `ok` optional and others left out.
                Without `id` and `at` it gets a new id and the time of now.

        Returns:
            Its id, also if it was lost.
        """
        identity = new_id("evt")
        try:
            identity = _given_id(event) or identity
            self._outlet.write(encode(event, identity, _time_us(event), self._redaction))
        except Exception as error:  # noqa: BLE001 - the agent goes on, whatever an event or a disk is like
            self.lost += 1
            self._untold += 1
            self.why = _told(error)
        else:
            if self._untold:
                self._tell_loss()
        return identity

    def flush(self) -> None:
        """Wait until the disk has what was recorded. What it does not take is told in `why`."""
        try:
            self._outlet.flush()
        except OSError as error:
            self.why = _told(error)

    def close(self) -> None:
        """Give what was recorded to its readers at once; what is recorded later goes to a new file."""
        self._outlet.close()

    def _tell_loss(self) -> None:
        """Write down how many events were lost, now that writing works again; what they were is known to nobody."""
        untold, self._untold = self._untold, 0
        try:
            self._outlet.write(orjson.dumps({"lost": untold, "at": time.time_ns() // 1000}))
        except (OSError, FullError):
            self._untold += untold


def _given_id(event: Mapping[str, Any]) -> str:
    given = event.get("id")
    return given if isinstance(given, str) and _GIVEN_ID.fullmatch(given) else ""


def _time_us(event: Mapping[str, Any]) -> int:
    given = event.get("at")
    return given if type(given) is int and 0 <= given < _NEVER else time.time_ns() // 1000


def _told(error: Exception) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - the text of an error is somebody's code, too
        return name
