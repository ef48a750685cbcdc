"""What is wrong with a file, collected, so that a person can mend it in one go."""

from __future__ import annotations

from dataclasses import dataclass, field

from dspy_reflex.errors import DatasetError

MAX_SHOWN = 20
"""How many problems one message lists."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing in a file that cannot be used."""

    where: str
    """`file:line`, or the file."""
    text: str
    """What is wrong and what to do."""

    def __str__(self) -> str:
        """As messages have it."""
        return f"{self.where}: {self.text}"


@dataclass
class Problems:
    """The problems of one data set. Nothing is raised until all of it was read."""

    found: list[Problem] = field(default_factory=list[Problem])

    def add(self, where: str, text: str) -> None:
        """Note one problem: where, what, and what to do."""
        self.found.append(Problem(where, text))

    @property
    def in_order(self) -> list[Problem]:
        """All of them, so that a reader goes through a file once, from the top."""
        return sorted(self.found, key=_place)

    @property
    def places(self) -> int:
        """How many lines have a problem; one line may have several."""
        return len({one.where for one in self.found})

    def raise_if_any(self) -> None:
        """Stop here if there was a problem.

        Raises:
            DatasetError: Names all of them, or the first twenty and how many more there are.
        """
        if not self.found:
            return
        if len(self.found) == 1:
            raise DatasetError(str(self.found[0]))
        shown = [f"  {one}" for one in self.in_order[:MAX_SHOWN]]
        if more := len(self.found) - len(shown):
            shown.append(f"  ... and {more} more")
        raise DatasetError("\n".join([f"{len(self.found)} problems, nothing was read:", *shown]))


def _place(problem: Problem) -> tuple[str, int]:
    """File and line number of a problem."""
    file, _, line = problem.where.rpartition(":")
    return (file, int(line)) if line.isdecimal() else (problem.where, 0)
