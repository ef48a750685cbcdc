"""`dspy-reflex data import`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import FILE, as_json, print_json, skip_bad_option, teller
from dspy_reflex.errors import ConfigError, DatasetError
from dspy_reflex.evalset.problems import MAX_SHOWN, Problems
from dspy_reflex.evalset.writing import to_lines
from dspy_reflex.files import write_atomic

if TYPE_CHECKING:
    from dspy_reflex.evalset.importers.imported import Imported
    from dspy_reflex.evalset.importers.mapping import Mapped, Six

FORMATS = ("whowhen", "trail", "mast", "agentrx", "agenterrorbench", "table")
SIX = "six"


def _columns(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if wrong := [value for value, (field, _, column) in zip(values, pairs, strict=True) if not (field and column)]:
        raise click.BadParameter(f"{wrong[0]!r} is not FIELD=COLUMN, such as task=question")
    return {field: column for field, _, column in pairs}


@click.command("import")
@click.argument("name", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("path")
@click.option("--out", type=FILE, required=True, help="JSON Lines file that the rows go to.")
@click.option(
    "--map", "mapping", metavar="six|NAME|FILE.toml",
    help="Put the six causes in place of native labels: by the format's own table, another one, or yours.",
)  # fmt: skip
@click.option(
    "--column", "columns", multiple=True, metavar="FIELD=COLUMN", callback=_columns,
    help="For a table: which column a field is; repeatable.",
)  # fmt: skip
@click.option("--explanations", type=FILE, help="JSON Lines file for what annotators wrote. Default: not kept.")
@skip_bad_option
@as_json
def command(
    name: str, path: str, out: Path, mapping: str | None, columns: dict[str, str],
    explanations: Path | None, skip_bad: bool, as_json: bool,
) -> None:  # fmt: skip
    """Turn a public data set or a table into labelled failures.

    FORMAT is whowhen, trail, mast, agentrx, agenterrorbench or table. PATH is a file or folder as published, or
    hf:owner/name[:split].
    """
    from dspy_reflex.evalset.importers.registry import import_failures

    table = _table(name, mapping) if mapping else None
    skipped = Problems()
    found = import_failures(name, path, columns=columns, skipped=skipped if skip_bad else None)
    six = _six(found, table)
    rows = six.imported if six else found
    _tell_skipped(skipped)
    write_atomic(out, to_lines(rows.rows))
    if explanations:
        write_atomic(
            explanations, to_lines({"id": key, "explanation": text} for key, text in rows.explanations.items())
        )
    if as_json:
        print_json(_report(name, path, out, found, six) | {"problems": [str(one) for one in skipped.found]})
    else:
        _print(path, out, found, six)


def _table(name: str, mapping: str) -> Mapped:
    """The mapping asked for; `six` is the format's own."""
    from dspy_reflex.evalset.importers.mapping import load_mapping

    if mapping == SIX and name == FORMATS[-1]:
        raise ConfigError("a table has no mapping of its own; say which with --map NAME or --map FILE.toml")
    return load_mapping(name if mapping == SIX else mapping)


def _six(found: Imported, table: Mapped | None) -> Six | None:
    from dspy_reflex.evalset.importers.mapping import to_six

    if table is None:
        return None
    six = to_six(found, table)
    if not six.imported.rows:
        lost = ", ".join(f"{label} {count}" for label, count in six.dropped.items())
        raise DatasetError(f"no row is left: none of these maps to a cause: {lost}; import without --map")
    return six


def _tell_skipped(skipped: Problems) -> None:
    say = teller()
    for line in skipped.found[:MAX_SHOWN]:
        say(f"warning: skipped {line}")
    if skipped.found:
        say(f"warning: {skipped.places} records were skipped, {len(skipped.found)} problems")


def _report(name: str, path: str, out: Path, found: Imported, six: Six | None) -> dict[str, Any]:
    rows = six.imported if six else found
    report: dict[str, Any] = {"format": name, "path": path, "out": str(out), "rows": len(rows.rows)}
    report |= {"imported": len(found.rows), "unlabelled": _unlabelled(found)}
    report |= {"labels": found.labels, "skipped": dict(found.skipped), "explanations": len(rows.explanations)}
    if six:
        report |= {"causes": rows.labels, "kept": dict(six.kept), "dropped": dict(six.dropped)}
    return report


def _unlabelled(found: Imported) -> int:
    return len(found.rows) - sum(found.labels.values())


def _print(path: str, out: Path, found: Imported, six: Six | None) -> None:
    click.echo(f"imported {len(found.rows)} rows from {path}")
    for label, count in found.labels.items():
        fate = f"  {_fate(label, six)}" if six else ""
        click.echo(f"  {count:6}  {label}{fate}")
    if unlabelled := _unlabelled(found):
        click.echo(f"  {unlabelled:6}  without a label")
    if six:
        click.echo(f"mapped {len(six.imported.rows)}, dropped {sum(six.dropped.values())}")
        for cause, count in six.imported.labels.items():
            click.echo(f"  {count:6}  {cause}")
    for reason, count in found.skipped.items():
        click.echo(f"no row: {count:6}  {reason}")
    click.echo(f"written to {out}")


def _fate(label: str, six: Six) -> str:
    counts = Counter({"mapped": six.kept.get(label, 0), "dropped": six.dropped.get(label, 0)})
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
