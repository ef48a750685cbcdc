"""`dspy-reflex data stats`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dspy_reflex.cli.common import FILE, as_json, default_datasets, need_compile, print_json, taxonomy_option


@click.command("stats")
@click.argument("path", type=FILE, required=False)
@taxonomy_option
@click.option(
    "--shortcuts", is_flag=True, help="Also measure how far source, length, domain or agent alone tell the cause."
)
@click.option("--plots", type=FILE, help="Folder for counts.png and lengths.png.")
@as_json
def command(path: Path | None, taxonomy: str, shortcuts: bool, plots: Path | None, as_json: bool) -> None:
    """Count the labelled failures in PATH (default: the bundled eval set) by split, domain, kind, source and cause."""
    need_compile("data stats")
    from dspy_reflex.evalset.checks.shortcut import measure_shortcuts
    from dspy_reflex.evalset.load import load_evalset
    from dspy_reflex.evalset.stats import plot, tables, to_frame
    from dspy_reflex.taxonomies.load import load_taxonomy

    (place,) = default_datasets((path,) if path else ())
    evalset = load_evalset(place, load_taxonomy(taxonomy))
    frame = to_frame(evalset)
    found = tables(frame)
    written = plot(frame, plots) if plots else ()
    short = measure_shortcuts(evalset.rows) if shortcuts else None
    if as_json:
        counted = {name: json.loads(table.to_json(orient="index")) for name, table in found.items()}
        print_json({"dataset": str(place), "tables": counted, "shortcuts": short.to_json() if short else None})
        return
    for table in found.values():
        click.echo(f"{table.to_string()}\n")
    if short:
        click.echo(f"told without reading what happened, cross-validated accuracy, n={short.n}")
        for name, score in {"constant answer": short.constant, **short.alone, "words (TF-IDF)": short.words}.items():
            click.echo(f"  {name:<18}{score:.3f}")
    for one in written:
        click.echo(f"written: {one}")
