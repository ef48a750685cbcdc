"""`dspy-reflex data agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import FILE, as_json, need_compile, print_json, taxonomy_option
from dspy_reflex.errors import DatasetError

if TYPE_CHECKING:
    from dspy_reflex.evalset.agreement import Agreement


@click.command("agreement")
@click.argument("path", type=FILE)
@click.option("--between", help="Two annotators, as NAME,NAME. Default: the two with most failures in common.")
@taxonomy_option
@as_json
def command(path: Path, between: str | None, taxonomy: str, as_json: bool) -> None:
    """Say how far two annotators agree on PATH, by the votes in its rows: raw, Cohen's kappa, Krippendorff's alpha."""
    need_compile("data agreement")
    from dspy_reflex.evalset.agreement import agreement
    from dspy_reflex.evalset.load import load_evalset
    from dspy_reflex.taxonomies.load import load_taxonomy

    evalset = load_evalset(path, load_taxonomy(taxonomy))
    rows = [row for rows in evalset.splits.values() for row in rows]
    found = agreement(rows, _two(between) if between else None)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _two(between: str) -> tuple[str, str]:
    names = [name.strip() for name in between.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise DatasetError(f"--between {between!r} is not two names, such as anna,ben")
    return names[0], names[1]


def _print(found: Agreement) -> None:
    low, high = found.interval
    click.echo(f"{found.annotators[0]} and {found.annotators[1]}, {found.n} failures")
    click.echo(f"  raw agreement         {found.raw:.3f}")
    click.echo(f"  Cohen's kappa         {found.kappa:.3f} [{low:.3f}, {high:.3f}]")
    click.echo(f"  Krippendorff's alpha  {found.alpha:.3f}")
    click.echo(f"  first or second       {found.first_or_second:.3f}")
    click.echo("kappa by label")
    for label, kappa in found.kappa_of.items():
        click.echo(f"  {label:<24}{kappa:.3f}")
    if found.confusions:
        click.echo("disagreements")
    for one, other, count in found.confusions:
        click.echo(f"  {one} / {other}  {count}")
