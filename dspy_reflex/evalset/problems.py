"""What is wrong with a file, collected, so that a person can mend it in one go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dspy_reflex.errors import DatasetError

PLACE = re.compile(r"(.*?):(\d+): ")
MAX_SHOWN = 20
"""How many problems one message lists."""


@dataclass
class Problems:
    """The problems of one data set. Nothing is raised until all of it was read."""

    lines: list[str] = field(default_factory=list[str])

    def add(self, where: str, text: str) -> None:
        """Note one problem: where, what, and what to do."""
        self.lines.append(f"{where}: {text}")

    def raise_if_any(self) -> None:
        """Stop here if there was a problem.

        Raises:
            DatasetError: Names all of them, or the first twenty and how many more there are.
        """
        if not self.lines:
            return
        if len(self.lines) == 1:
            raise DatasetError(self.lines[0])
        shown = [f"  {line}" for line in sorted(self.lines, key=_place)[:MAX_SHOWN]]
        if more := len(self.lines) - len(shown):
            shown.append(f"  ... and {more} more")
        raise DatasetError("\n".join([f"{len(self.lines)} problems, nothing was read:", *shown]))


def _place(line: str) -> tuple[str, int]:
    """File and line number of a problem, so that a reader goes through a file once, from the top."""
    found = PLACE.match(line)
    return (found[1], int(found[2])) if found else (line, 0)
