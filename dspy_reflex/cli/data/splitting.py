"""`dspy-reflex data split`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import FILE, as_json, need_compile, print_json, skip_bad_option, taxonomy_option, teller
from dspy_reflex.errors import DatasetError

if TYPE_CHECKING:
    from dspy_reflex.evalset.labelled import LabelledFailure

SHARE = click.FloatRange(0, 1, max_open=True)


@click.command("split")
@click.argument("paths", type=FILE, nargs=-1, required=True)
@click.option(
    "--out", type=FILE, required=True, help="Folder for train.jsonl, val.jsonl, test.jsonl and manifest.json."
)
@click.option("--val", type=SHARE, default=0.15, show_default=True, help="Share that programs are chosen on.")
@click.option("--test", type=SHARE, default=0.3, show_default=True, help="Share that nothing may learn from.")
@click.option(
    "--hard",
    type=SHARE,
    default=0.0,
    show_default=True,
    help="Share of test_hard: the families that words solve least.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@taxonomy_option
@skip_bad_option
@as_json
def command(
    paths: tuple[Path, ...], out: Path, val: float, test: float, hard: float, seed: int, taxonomy: str, skip_bad: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Divide all rows of PATHS anew; no family or group is split.

    Every split gets the same mix of causes and sources. Rows without a root cause stay in controls, else go to unknown.
    """
    need_compile("data split")
    from dspy_reflex.evalset.collect import collect
    from dspy_reflex.evalset.divide import Shares, divide
    from dspy_reflex.evalset.labelled import UNLABELLED_SPLITS
    from dspy_reflex.evalset.writing import write_splits
    from dspy_reflex.taxonomies.load import load_taxonomy

    if out.exists() and any(out.iterdir()):
        raise DatasetError(
            f"{out}: is not empty; a data set that has been divided is not divided over it, give a new folder"
        )
    found = collect(paths, load_taxonomy(taxonomy), teller(), skip_bad=skip_bad)
    _distinct(row for one in found.sets for rows in one.splits.values() for row in rows)
    splits = divide([row for one in found.sets for row in one.rows], Shares(val, test, hard), seed)
    for one in found.sets:
        for name, rows in one.splits.items():
            blameless = tuple(row for row in rows if row.root_cause is None)
            if blameless:
                kept = name if name in UNLABELLED_SPLITS else UNLABELLED_SPLITS[0]
                splits[kept] = splits.get(kept, ()) + blameless
    write_splits(out, splits)
    counts = {name: len(rows) for name, rows in splits.items()}
    if as_json:
        print_json({"out": str(out), "rows": counts})
    else:
        click.echo(f"{out}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))


def _distinct(rows: Iterable[LabelledFailure]) -> None:
    """Ids must be distinct over all files, or the folder that is written could not be read."""
    first: dict[str, str] = {}
    for row in rows:
        if row.id in first:
            raise DatasetError(
                f"{row.where}: id {row.id!r} is already at {first[row.id]}; give every failure its own id"
            )
        first[row.id] = row.where
