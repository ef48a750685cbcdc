"""A document in a terminal. Texts are never read as markup, and control characters in them are shown, not obeyed."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from dspy_reflex.runs.pages.blocks import Block, Diff, Document, Picture, Row, Table, Text, kind_of
from dspy_reflex.untrusted import neutralise

STYLES = {"added": "green", "removed": "red", "place": "cyan", "file": "bold", "same": ""}
PIPE_COLUMNS = 200
"""Width where no terminal gives one: what is read by a program or a pager should not be broken."""


def show(document: Document) -> None:
    """Print all of it but the pictures to stdout."""
    console = console_for_stdout()
    console.print(_plain(document.title, "bold"))
    for section in document.sections:
        console.print(RichText())
        console.print(_plain(section.title, "bold underline"))
        for block in section.blocks:
            _show(console, block)


def console_for_stdout() -> Console:
    """A console that takes nothing for markup or for an emoji's name."""
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


def table_of(head: Row, rows: tuple[Row, ...]) -> RichTable:
    """A table without lines around its cells."""
    table = RichTable(box=None, pad_edge=False)
    for title in head:
        table.add_column(_plain(title, "dim"), overflow="fold")
    for row in rows:
        table.add_row(*(_plain(" ".join(cell.split())) for cell in row))
    return table


def _show(console: Console, block: Block) -> None:
    match block:
        case Text(text):
            console.print(_plain(text))
        case Table(head, rows):
            console.print(table_of(head, rows))
        case Diff(lines):
            for line in lines:
                console.print(_plain(line, STYLES[kind_of(line)]))
        case Picture():
            pass


def _plain(text: str, style: str = "") -> RichText:
    return RichText(neutralise(text), style)
