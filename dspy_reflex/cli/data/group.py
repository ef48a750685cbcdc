"""The verbs of `dspy-reflex data`."""

from __future__ import annotations

import click

from dspy_reflex.cli.lazy import lazy_group

COMMANDS = {
    "import": ("importing", "Turn a public data set or a table into labelled failures."),
    "label": ("labelling", "Label failures one by one in the terminal."),
    "agreement": ("agreeing", "Say how far the annotators agree."),
    "adjudicate": ("adjudicating", "Decide the failures that annotators disagree on."),
    "validate": ("validating", "Say what is wrong or suspicious with a data set."),
    "split": ("splitting", "Divide a data set into train, val and test; no family is split."),
    "stats": ("stats", "Count a data set, as tables and plots."),
    "show": ("showing", "Show one labelled failure."),
    "publish": ("publishing", "Write a data set as a Hugging Face folder with a card."),
}


@click.group("data", cls=lazy_group("dspy_reflex.cli.data", COMMANDS))
def command() -> None:
    """Import, label, check, split and publish labelled failures."""
