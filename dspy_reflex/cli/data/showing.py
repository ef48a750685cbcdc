"""`dspy-reflex data show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import FILE, as_json, default_datasets, print_json, taxonomy_option
from dspy_reflex.errors import DatasetError
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.evalset.labelled import LabelledFailure


@click.command("show")
@click.argument("failure_id", metavar="ID")
@click.option("--dataset", type=FILE, help="Folder or file. Default: the bundled eval set.")
@taxonomy_option
@as_json
def command(failure_id: str, dataset: Path | None, taxonomy: str, as_json: bool) -> None:
    """Show one labelled failure: what a program sees of it, then what people say about it."""
    from dspy_reflex.evalset.load import load_evalset
    from dspy_reflex.evalset.writing import to_object
    from dspy_reflex.taxonomies.load import load_taxonomy

    (place,) = default_datasets((dataset,) if dataset else ())
    evalset = load_evalset(place, load_taxonomy(taxonomy))
    row = next((row for rows in evalset.splits.values() for row in rows if row.id == failure_id), None)
    if row is None:
        raise DatasetError(f"{place}: no failure has the id {failure_id!r}; ids are in the field `id`")
    if as_json:
        print_json(to_object(row) | {"where": row.where})
    else:
        _print(row)


def _print(row: LabelledFailure) -> None:
    click.echo(f"{row.id}  {row.where}  {row.failure.severity}")
    for name, text in row.inputs.items():
        click.echo(f"\n{name}\n{_indented(text)}")
    also = f", or {', '.join(row.also_acceptable)}" if row.also_acceptable else ""
    click.echo(f"\nroot cause  {row.root_cause or 'none'}{also}")
    for name, text in (("component", row.component), ("rule", row.reference_rule), ("decided", row.adjudication)):
        if text:
            click.echo(f"{name:<12}{neutralise(text)}")
    for quote in row.evidence:
        click.echo(f"{'evidence':<12}{neutralise(quote)}")
    for vote in row.votes:
        second = f", then {vote.second}" if vote.second else ""
        click.echo(f"{'vote':<12}{neutralise(vote.annotator)}: {vote.root_cause or 'none'}{second}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
