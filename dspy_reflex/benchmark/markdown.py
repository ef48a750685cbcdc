"""Tables in Markdown that no name or id can break or turn into markup."""

from __future__ import annotations

from collections.abc import Iterable

from dspy_reflex.untrusted import neutralise


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table; cells are made safe."""
    rows = [list(map(safe, line)) for line in lines]
    titles = list(map(safe, head))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, ["---"] * len(titles), *rows))


def safe(text: str) -> str:
    """A name or id that cannot break a table or become markup: ids come from the failures."""
    plain = " ".join(neutralise(text).split())
    return "".join(f"\\{letter}" if letter in "|\\`<>*[]" else letter for letter in plain)
