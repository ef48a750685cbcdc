"""`dspy-reflex data adjudicate`."""

from __future__ import annotations

from pathlib import Path

import click

from dspy_reflex.cli.common import FILE, as_json, print_json, taxonomy_option
from dspy_reflex.cli.data.terminal import NOTHING_KEY, label_keys, read_labelled, show, write_rows
from dspy_reflex.cli.keys import ask, need_terminal, say
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.untrusted import neutralise


@click.command("adjudicate")
@click.argument("file", type=FILE)
@click.option("--by", required=True, help="Your name.")
@taxonomy_option
@as_json
def command(file: Path, by: str, taxonomy: str, as_json: bool) -> None:
    """Decide, with a written reason, each failure in FILE on which its annotators differ.

    The label goes into FILE with the reason; the votes stay as they were, so agreement is still that before adjudication.
    """
    need_terminal("data adjudicate")
    from dspy_reflex.evalset.annotate import decided, undecided
    from dspy_reflex.taxonomies.load import load_taxonomy

    labels = load_taxonomy(taxonomy)
    rows = read_labelled(file, labels)
    open_ones = undecided(rows.values())
    keys = label_keys(labels)
    choices = {**keys, NOTHING_KEY: "nothing to blame", "s": "skip", "q": "quit"}
    for place, row in enumerate(open_ones, start=1):
        show(row, f"{place}/{len(open_ones)}")
        _votes(row)
        key = ask("root cause", choices)
        if key == "q":
            break
        if key != "s":
            reason = click.prompt("why", err=True).strip()
            rows[row.id] = decided(row, keys.get(key), f"{by}: {reason}")
            write_rows(file, rows)
    left = len(undecided(rows.values()))
    if as_json:
        print_json({"file": str(file), "decided": len(open_ones) - left, "left": left})
    else:
        click.echo(f"{file}: {len(open_ones) - left} decided, {left} left")


def _votes(row: LabelledFailure) -> None:
    for vote in row.votes:
        second = f", then {vote.second}" if vote.second else ""
        say(f"vote  {neutralise(vote.annotator)}: {vote.root_cause or 'nothing to blame'}{second}")
